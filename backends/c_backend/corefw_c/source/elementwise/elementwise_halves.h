/* The cheap loops of float over half types as they are stored, halves_<name>_<type>: elements are widened, computed and
 * rounded in registers, since blocks of floats in between would cost more than the work. */
#include "core/storage.h"

#include <string.h>

enum { CHEAP = 3, REGISTER = REGISTER_BYTES / sizeof(float), TWO = 2 * REGISTER };

static inline void put_floats(float *to, register_floats x) { *(unaligned_floats *)to = x; }

#define LOAD_FLOAT16 load_f16
#define LOAD_BFLOAT16 load_bf16
#define STORE_FLOAT16 store_two_f16
#define STORE_BFLOAT16 store_two_bf16

#define REGISTERS_1 register_floats a
#define REGISTERS_2 REGISTERS_1, register_floats b
#define REGISTERS_3 REGISTERS_2, register_floats c
#define SPREAD_1 float x[REGISTER]; put_floats(x, a);
#define SPREAD_2 SPREAD_1 float y[REGISTER]; put_floats(y, b);
#define SPREAD_3 SPREAD_2 float z[REGISTER]; put_floats(z, c);
#define LANE_1 x[i]
#define LANE_2 x[i], y[i]
#define LANE_3 x[i], y[i], z[i]
#define FLOAT_PARAMETERS_0
#define FLOAT_PARAMETERS_1 , float s
#define FLOAT_PARAMETERS_2 , float s, float t
#define FLOAT_PARAMETERS_3 , float s, float t, float u
#define WIDENED_1(load, at) load(a + (at))
#define WIDENED_2(load, at) WIDENED_1(load, at), load(b + (at))
#define WIDENED_3(load, at) WIDENED_2(load, at), load(c + (at))
#define LAST_1 a = whole(last[0], a + i, rest) - i;
#define LAST_2 LAST_1 b = whole(last[1], b + i, rest) - i;
#define LAST_3 LAST_2 c = whole(last[2], c + i, rest) - i;

/* The last elements, of so many bytes, with zeros behind them, where two registers can be read. */
static __attribute__((noinline)) const uint16_t *whole(uint16_t *to, const uint16_t *from, size_t rest) {
    memset(to, 0, TWO * sizeof *to);
    return memcpy(to, from, rest);
}

/* The last results, to where they belong. */
static __attribute__((noinline)) void put_last(uint16_t *to, const uint16_t *from, size_t rest) { memcpy(to, from, rest); }

/* A register of results; its arrays never leave the registers. */
#define LANES_OF(tensors, numbers, name) \
    static inline __attribute__((always_inline)) register_floats lanes_##name( \
        REGISTERS_##tensors FLOAT_PARAMETERS_##numbers) { \
        SPREAD_##tensors \
        _Pragma("GCC unroll 1") for (int i = 0; i < REGISTER; i++) x[i] = one_##name(LANE_##tensors AND_NUMBERS_##numbers); \
        return *(const unaligned_floats *)x; \
    }

/* n elements, which may replace an input. */
#define HALVES_OF(tensors, numbers, name, type) \
    static void halves_##name##_##type(intptr_t n, char *const *in, char *out) { \
        TENSORS_##tensors(uint16_t); \
        NUMBERS_##numbers(float, tensors) \
        uint16_t *results = (uint16_t *)out, last[4][TWO]; \
        for (intptr_t i = 0; i < n; i += TWO) { \
            size_t rest = n - i < TWO ? (size_t)(n - i) * sizeof *results : 0; \
            if (rest) { LAST_##tensors } \
            register_floats low = lanes_##name(WIDENED_##tensors(LOAD_##type, i) AND_NUMBERS_##numbers); \
            register_floats high = lanes_##name(WIDENED_##tensors(LOAD_##type, i + REGISTER) AND_NUMBERS_##numbers); \
            STORE_##type(low, high, rest ? last[3] : results + i); \
            if (rest) put_last(results + i, last[3], rest); \
        } \
    }

/* Without instructions for float16 its conversions are better loops of their own. */
#if defined(__F16C__) || defined(__AVX512F__)
#define FLOAT16_OF HALVES_OF
#else
#define FLOAT16_OF(tensors, numbers, name, type) enum { halves_##name##_##type = 0 };
#endif

#define HALVES_bool8(...)
#define HALVES_float(tensors, numbers, name) \
    LANES_OF(tensors, numbers, name) \
    HALVES_OF(tensors, numbers, name, BFLOAT16) \
    FLOAT16_OF(tensors, numbers, name, FLOAT16)

#define LOOP_1_0(dtypes, name, suffix, T, R, ...) HALVES_##R(1, 0, name##_##suffix)
#define LOOP_2_0(dtypes, name, suffix, T, R, ...) HALVES_##R(2, 0, name##_##suffix)
#define LOOP_3_0(dtypes, name, suffix, T, R, ...) HALVES_##R(3, 0, name##_##suffix)
#define LOOP_1_1(dtypes, name, suffix, T, R, ...) HALVES_##R(1, 1, name##_##suffix)
#define LOOP_1_2(dtypes, name, suffix, T, R, ...) HALVES_##R(1, 2, name##_##suffix)
#define LOOP_1_3(dtypes, name, suffix, T, R, ...) HALVES_##R(1, 3, name##_##suffix)
#define LOOP_2_1(dtypes, name, suffix, T, R, ...) HALVES_##R(2, 1, name##_##suffix)
#define LOOP_2_2(dtypes, name, suffix, T, R, ...) HALVES_##R(2, 2, name##_##suffix)
#define LOOP_2_3(dtypes, name, suffix, T, R, ...) HALVES_##R(2, 3, name##_##suffix)
#define LOOP_3_1(dtypes, name, suffix, T, R, ...) HALVES_##R(3, 1, name##_##suffix)
#define LIMITED_1_0 LOOP_1_0
#define LIMITED_2_0 LOOP_2_0
#include "elementwise/elementwise_loops.inc"
#undef LOOP_1_0
#undef LOOP_2_0
#undef LOOP_3_0
#undef LOOP_1_1
#undef LOOP_1_2
#undef LOOP_1_3
#undef LOOP_2_1
#undef LOOP_2_2
#undef LOOP_2_3
#undef LOOP_3_1
#undef LIMITED_1_0
#undef LIMITED_2_0
#undef HALVES_bool8
#undef HALVES_float
#undef HALVES_OF
#undef FLOAT16_OF
#undef LANES_OF
