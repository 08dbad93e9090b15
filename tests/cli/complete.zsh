# Prints what zsh offers for the last word of a line, one word per line.
# usage: zsh -f complete.zsh FOLDER_OF_FUNCTIONS LINE
#
# An interactive shell runs in a pseudo terminal. Its compadd prints the words it is given; lines of NUL mark where
# completion begins and ends.
zmodload zsh/zpty
zpty shell zsh -f -i
setup=$(mktemp)
cat >$setup <<'SETUP'
PROMPT=
autoload -Uz compinit
compinit -D -u
bindkey '^I' complete-word
mark() { print -r -- $'\0' }
compprefuncs=(mark)
comppostfuncs=(mark exit)
zstyle ':completion:*' insert-tab false
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    typeset -a found
    builtin compadd -A found "$@"
    print -rl -- $found
    builtin compadd "$@"
}
print ready
SETUP
zpty -w shell "fpath=(${(q)1} \$fpath); source $setup"
while zpty -r shell line; do [[ $line == ready* ]] && break; done
rm $setup
zpty -n -w shell "$2"$'\t'
integer marks=0
while zpty -r shell line; do
    if [[ $line == *$'\0'* ]]; then
        ((marks++)) && exit 0
    elif ((marks)); then
        print -r -- ${line%%$'\r'*}
    fi
done
exit 1
