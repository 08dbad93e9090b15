"""Prints the coefficients of src/engine/kernels/vmath.h: minimax fits, coefficients rounded to f32.

Each fit equioscillates weight * (target - polynomial), the weight turning it into an error relative to the function
that is computed. Needs mpmath."""
from mpmath import mp, mpf
import struct

mp.dps = 40


def f32(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def remez(f, w, lo, hi, powers):
    """Coefficients c minimising max |w(x) * (f(x) - sum c_i x^p_i)| on [lo, hi]."""
    n = len(powers)
    mid, half = (lo + hi) / 2, (hi - lo) / 2
    nodes = [mid - half * mp.cos(mp.pi * i / n) for i in range(n + 1)]
    grid = [mid - half * mp.cos(mp.pi * mpf(i) / 1500) for i in range(1501)]
    fg = [(x, f(x), w(x)) for x in grid]
    for _ in range(12):
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for i, x in enumerate(nodes):
            for j, p in enumerate(powers):
                a[i, j] = x ** p
            a[i, n] = (-1) ** i / w(x)
            b[i] = f(x)
        c = mp.lu_solve(a, b)
        errors = [ww * (y - sum(c[j] * x ** p for j, p in enumerate(powers))) for x, y, ww in fg]
        peaks = []
        for i, e in enumerate(errors):  # the largest of each run of one sign
            if peaks and (errors[peaks[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[peaks[-1]]):
                    peaks[-1] = i
            else:
                peaks.append(i)
        while len(peaks) > n + 1:
            peaks.pop(0 if abs(errors[peaks[0]]) < abs(errors[peaks[-1]]) else -1)
        if len(peaks) < n + 1:
            break
        nodes = [grid[i] for i in peaks]
    return [c[j] for j in range(n)], max(abs(e) for e in errors)


def fit(name, f, w, lo, hi, degree):
    lo, hi, powers = mpf(lo), mpf(hi), list(range(degree + 1))
    c, error = remez(f, w, lo, hi, powers)
    c = [f32(v) for v in c]
    rounded = max(abs(w(x) * (f(x) - sum(v * x ** p for p, v in enumerate(c))))
                  for x in [lo + (hi - lo) * mpf(i) / 2000 for i in range(2001)])
    print(f"{name}: error {mp.nstr(error, 3)}, with rounded coefficients {mp.nstr(rounded, 3)}")
    for p in range(degree, -1, -1):
        print(f"    {c[p].hex().replace('0000000p', 'p')}f, /* x^{p} */")


ln2 = mp.log(2)
fit("exp: (exp(r) - 1 - r) / r^2 in r", lambda r: (mp.expm1(r) - r) / r ** 2 if abs(r) > mpf("1e-6") else mpf(1) / 2 + r / 6,
    lambda r: r ** 2 / mp.exp(r) + mpf("1e-6"), -ln2 / 2 * mpf("1.003"), ln2 / 2 * mpf("1.003"), 4)

fit("exp2: (2^f - 1) / f in f", lambda f: (2 ** f - 1) / f if abs(f) > mpf("1e-9") else ln2, lambda f: abs(f) / 2 ** f + mpf("1e-7"),
    mpf("-0.5"), mpf("0.5"), 4)

def sin_rest(s):
    r = mp.sqrt(s)
    return (mp.sin(r) / r - 1) / s if s > mpf("1e-8") else -mpf(1) / 6 + s / 120
def cos_rest(s):
    r = mp.sqrt(s)
    return (mp.cos(r) - 1 + s / 2) / s ** 2 if s > mpf("1e-8") else mpf(1) / 24 - s / 720
quarter = (mp.pi / 4 * mpf("1.001")) ** 2
fit("sin: (sin(r) / r - 1) / s in s = r^2", sin_rest, lambda s: s + mpf("1e-4"), 0, quarter, 2)
fit("cos: (cos(r) - 1 + s / 2) / s^2 in s = r^2", cos_rest, lambda s: s ** 2 + mpf("1e-4"), 0, quarter, 2)

def log_rest(f):
    return (mp.log1p(f) - f + f ** 2 / 2) / f ** 3 if abs(f) > mpf("1e-6") else mpf(1) / 3 - f / 4
fit("log: (log(1 + f) - f + f^2 / 2) / f^3 in f", log_rest, lambda f: abs(f ** 3 / mp.log1p(f)) + mpf("1e-4") if f else mpf("1e-4"),
    mp.sqrt(mpf(1) / 2) - 1, mp.sqrt(2) - 1, 8)

def tanh_rest(s):
    r = mp.sqrt(s)
    return (mp.tanh(r) / r - 1) / s if s > mpf("1e-8") else -mpf(1) / 3 + 2 * s / 15
fit("tanh: (tanh(r) / r - 1) / s in s = r^2", tanh_rest, lambda s: s + mpf("1e-3"), 0, mpf("0.626") ** 2, 5)

def erf_rest(s):
    r = mp.sqrt(s)
    return mp.erf(r) / r - 1 if s > mpf("1e-12") else 2 / mp.sqrt(mp.pi) * (1 - s / 3) - 1
fit("erf: erf(r) / r - 1 in s = r^2", erf_rest, lambda s: 1 / (1 + erf_rest(s)), 0, 1, 6)
fit("erf: log(erfc(r)) in r, weight erfc", lambda r: mp.log(mp.erfc(r)), lambda r: mp.erfc(r) / mp.erf(r), 1, 4, 6)

def below(n):  # the share of a normal distribution
    return mp.erfc(-n / mp.sqrt(2)) / 2
fit("gelu: (log2(below(n)) + 1) / n in n, weight n below(n)",
    lambda n: (mp.log(below(n), 2) + 1) / n if n < mpf("-1e-9") else mp.sqrt(2 / mp.pi) / ln2,
    lambda n: (n ** 2 * below(n) + mpf("1e-6")) * ln2, mpf("-5.5"), 0, 6)
