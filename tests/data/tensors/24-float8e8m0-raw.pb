B
float8e8m0J^|Wl_7žº—Ö':)*J