/* empty.c - what a program weighs that does nothing. */
int main(void) { return 0; }
