# A backend whose toolkit no machine has.
set(BACKEND_MISSING "there is no absent.h")
set(BACKEND_SOURCES none.c)
