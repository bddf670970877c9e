/* The cheap loops of float over half types as they are stored, halves_<name>_<type>: elements are widened, computed and
 * rounded in registers, since blocks of floats in between would cost more than the work. */
#include "core/storage.h"

#include <string.h>

enum { CHEAP = 3, REGISTER = REGISTER_BYTES / sizeof(float), TWO = 2 * REGISTER };

static inline void put_floats(float *to, register_floats x) { *(unaligned_floats *)to = x; }

static inline register_floats load_f32(const float *from) { return *(const unaligned_floats *)from; }

#define ELEMENT_FLOAT16 uint16_t
#define ELEMENT_BFLOAT16 uint16_t
#define ELEMENT_FLOAT32 float
#define LOAD_FLOAT16 load_f16
#define LOAD_BFLOAT16 load_bf16
#define LOAD_FLOAT32 load_f32
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
#define LAST_1 a = (const uint16_t *)whole(last[0], a + i, rest, 2 * TWO) - i;
#define LAST_2 LAST_1 b = (const uint16_t *)whole(last[1], b + i, rest, 2 * TWO) - i;
#define LAST_3 LAST_2 c = (const uint16_t *)whole(last[2], c + i, rest, 2 * TWO) - i;

/* The last elements, of `rest` bytes, with zeros behind them up to `size`, as two registers have. */
static __attribute__((noinline)) const void *whole(void *to, const void *from, size_t rest, size_t size) {
    memset(to, 0, size);
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

/* The same for two tensors, one of which is of float; its `numbers` are 0. */
#define MIXED_OF(name, first, second, type) \
    static void halves_##name##_##first##_##second(intptr_t n, char *const *in, char *out) { \
        const ELEMENT_##first *a = (const ELEMENT_##first *)in[0]; \
        const ELEMENT_##second *b = (const ELEMENT_##second *)in[1]; \
        uint16_t *results = (uint16_t *)out, last[TWO]; \
        ELEMENT_##first last_a[TWO]; \
        ELEMENT_##second last_b[TWO]; \
        for (intptr_t i = 0; i < n; i += TWO) { \
            size_t rest = n - i < TWO ? (size_t)(n - i) : 0; \
            if (rest) { \
                a = (const ELEMENT_##first *)whole(last_a, a + i, rest * sizeof *a, sizeof last_a) - i; \
                b = (const ELEMENT_##second *)whole(last_b, b + i, rest * sizeof *b, sizeof last_b) - i; \
            } \
            register_floats low = lanes_##name(LOAD_##first(a + i), LOAD_##second(b + i)); \
            register_floats high = lanes_##name(LOAD_##first(a + i + REGISTER), LOAD_##second(b + i + REGISTER)); \
            STORE_##type(low, high, rest ? last : results + i); \
            if (rest) put_last(results + i, last, rest * sizeof *results); \
        } \
    }

/* Without instructions for float16 its conversions are better loops of their own. */
#if defined(__F16C__) || defined(__AVX512F__)
#define FLOAT16_OF HALVES_OF
#define MIXED_FLOAT16_OF MIXED_OF
#else
#define FLOAT16_OF(tensors, numbers, name, type) enum { halves_##name##_##type };
#define MIXED_FLOAT16_OF(name, first, second, type) enum { halves_##name##_##first##_##second };
#endif

#define HALVES_bool8(...)
#define HALVES_float(tensors, numbers, name) \
    LANES_OF(tensors, numbers, name) \
    HALVES_OF(tensors, numbers, name, BFLOAT16) \
    FLOAT16_OF(tensors, numbers, name, FLOAT16)
#define MIXED_bool8(...)
#define MIXED_float(name) \
    MIXED_OF(name, BFLOAT16, FLOAT32, BFLOAT16) \
    MIXED_OF(name, FLOAT32, BFLOAT16, BFLOAT16) \
    MIXED_FLOAT16_OF(name, FLOAT16, FLOAT32, FLOAT16) \
    MIXED_FLOAT16_OF(name, FLOAT32, FLOAT16, FLOAT16)

#define LOOP_1_0(dtypes, name, suffix, T, R, ...) HALVES_##R(1, 0, name##_##suffix)
#define LOOP_2_0(dtypes, name, suffix, T, R, ...) HALVES_##R(2, 0, name##_##suffix) MIXED_##R(name##_##suffix)
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
#undef MIXED_bool8
#undef MIXED_float
#undef MIXED_OF
#undef MIXED_FLOAT16_OF
#undef LANES_OF
