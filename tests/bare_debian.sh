#!/bin/bash
# The first hour on a machine that has nothing but Debian 12, git, make and Python: `make run` in a clone of this tree, then the
# commands of README.md and docs/ as they are written.
#
# usage: bare_debian.sh SOURCE_DIR WORK_DIR     as root
# Debian is installed once, into the cache. The network, its certificates and the settings of apt and pip are those of this
# machine. $PITH_DEBIAN_MIRROR: where the packages of Debian come from, if not from debootstrap's own mirror.
set -e
source=$(realpath "$1")
work=$2
cache=${PITH_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/pith}
base=$cache/debian-12
root=$work/root

fail() { echo "bare_debian.sh: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "run this as root: it makes a Debian of its own and enters it with chroot"
command -v debootstrap >/dev/null || fail "debootstrap is missing: tools/setup.sh long"

mkdir -p "$cache" "$work"
exec 9>"$cache/debian-12.lock"
flock 9
if [ ! -e "$base.complete" ]; then
    rm -rf "$base"
    debootstrap --variant=minbase --include=git,make,python3,ca-certificates bookworm "$base" ${PITH_DEBIAN_MIRROR:+"$PITH_DEBIAN_MIRROR"} >"$work/debootstrap.log" 2>&1 ||
        { tail -20 "$work/debootstrap.log" >&2; exit 1; }
    touch "$base.complete"
fi
flock -u 9

rm -rf "$root"
cp -a "$base" "$root"
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [ ! -e "$file" ] || cp -L "$file" "$root$file"
done
cp -a /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d"
git -c safe.directory="$source" clone -q "$source" "$root/opt/pith"
cat >"$root/opt/first_hour.sh" <<'EOF'
set -e
cd /opt/pith
git config --global --add safe.directory '*'
make run
[ "$(build/pith embed --text "a cat sat on the mat" | wc -l)" = 1 ]
make setup-test >/dev/null
export PITH_PYTHON=$(tools/test_python.sh)
"$PITH_PYTHON" tests/doc_commands.py . build
EOF

# What is mounted goes with the process.
export work root
unshare --mount --pid --fork --mount-proc bash -e -c '
    mount --bind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    mount -t tmpfs tmpfs "$root/tmp"
    settings=(HOME=/opt PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8)
    while IFS= read -r line; do settings+=("$line"); done < <(env | grep -E "^(PIP_|https?_proxy=|HTTPS?_PROXY=|no_proxy=|NO_PROXY=)")
    exec chroot "$root" env -i "${settings[@]}" bash /opt/first_hour.sh'
rm -rf "$root"
