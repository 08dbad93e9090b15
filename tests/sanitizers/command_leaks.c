/* command_leaks.c - the command leaves what it holds to the end of its process, and so do libraries
 * that it loads, such as the plugins of libheif. LeakSanitizer asks this function; what the library
 * itself loses is found by the unit tests. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return 1; }
