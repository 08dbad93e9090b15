/* start.c - from reset to main on the board mps2-an500: memory, the floating-point unit, the serial
 * line. */
#include "port.h"

#include <stdint.h>

extern uint32_t data_begin, data_end, data_load, bss_begin, bss_end, stack_top;
int main(void);
void reset(void);
static void fault(void);

__attribute__((section(".vectors"), used)) static void *const vectors[16] = {
    &stack_top,    (void *)reset, (void *)fault, (void *)fault,
    (void *)fault, (void *)fault, (void *)fault,
};

/* The first serial line of the board (Arm DAI 0479, "CMSDK APB UART"). */
#define UART ((volatile uint32_t *)0x40004000)

void port_put(char c) {
    while (UART[1] & 1) {}
    UART[0] = (uint8_t)c;
}

/* SYS_EXIT_EXTENDED of Arm's semihosting. */
void port_exit(int code) {
    uint32_t block[2] = { 0x20026, (uint32_t)code };
    register uint32_t operation __asm__("r0") = 0x20;
    register uint32_t *argument __asm__("r1") = block;
    __asm__ volatile("bkpt 0xab" : : "r"(operation), "r"(argument) : "memory");
    for (;;) {}
}

static void fault(void) {
    print("fault\n");
    port_exit(3);
}

void reset(void) {
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20; /* CPACR: the floating-point unit is on */
    __asm__ volatile("dsb; isb");
    for (uint32_t *to = &data_begin, *from = &data_load; to < &data_end;) *to++ = *from++;
    for (uint32_t *to = &bss_begin; to < &bss_end;) *to++ = 0;
    UART[4] = 16; /* the least divisor */
    UART[2] = 1;  /* the transmitter is on */
    port_exit(main());
}
