/* Includes the file TEMPLATE with REAL as uint32_t and names ending in _u32, and with uint64_t and _u64: their products
 * have the bits of signed ones, and may overflow. */
#define REAL uint32_t
#define OF_REAL(name) name##_u32
#include TEMPLATE
#undef REAL
#undef OF_REAL
#define REAL uint64_t
#define OF_REAL(name) name##_u64
#include TEMPLATE
#undef REAL
#undef OF_REAL
#undef TEMPLATE
