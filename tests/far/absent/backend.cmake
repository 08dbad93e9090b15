# A backend whose toolkit no machine has.
set(BACKEND_MISSING "there is no absent.h")
