set(BACKEND_SOURCES backend_far.c far_memory.c far_programs.c)
