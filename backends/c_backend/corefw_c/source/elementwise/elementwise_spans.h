/* Makes of the lines of elementwise_loops.inc first functions, then rows of the table of loops. A file of loops defines
 * `LOOPS_<suffix>` for the element types that it has, and includes this once, before its array of rows. */
#include "elementwise/elementwise.h"
#include "elementwise/special_functions.h" /* whose logarithms and exponentials are those of C's library */
#include "core/mathematics.h"
#include "elementwise/log_gamma.h"

#define TENSORS_1(T) const T *a = (const T *)in[0]
#define TENSORS_2(T) TENSORS_1(T), *b = (const T *)in[1]
#define TENSORS_3(T) TENSORS_2(T), *c = (const T *)in[2]
#define ELEMENTS_1 a[i]
#define ELEMENTS_2 a[i], b[i]
#define ELEMENTS_3 a[i], b[i], c[i]
#define NUMBERS_0(T, first)
#define NUMBERS_1(T, first) const T s = *(const T *)in[first];
#define NUMBERS_2(T, first) NUMBERS_1(T, first) const T t = *(const T *)in[first + 1];
#define NUMBERS_3(T, first) NUMBERS_2(T, first) const T u = *(const T *)in[first + 2];
#define AND_NUMBERS_0
#define AND_NUMBERS_1 , s
#define AND_NUMBERS_2 , s, t
#define AND_NUMBERS_3 , s, t, u

/* one_<name> computes an element, span_<name> n of them; they may replace an input. */
#define LOOP(tensors, numbers, name, T, R, parameters, ...) \
    static inline __attribute__((always_inline)) R one_##name parameters { __VA_ARGS__; } \
    static void span_##name(intptr_t n, char *const *in, char *out) { \
        TENSORS_##tensors(T); \
        NUMBERS_##numbers(T, tensors) \
        R *results = (R *)out; \
        INDEPENDENT for (intptr_t i = 0; i < n; i++) \
            results[i] = one_##name(ELEMENTS_##tensors AND_NUMBERS_##numbers); \
    }

/* A cheap loop of two tensors where the second one is one element. */
#define BESIDE(name, T, R, cost) \
    static void beside_##name(intptr_t n, char *const *in, char *out) { \
        if (!IS_CHEAP(cost)) return; \
        const T *a = (const T *)in[0], y = *(const T *)in[1]; \
        R *results = (R *)out; \
        INDEPENDENT for (intptr_t i = 0; i < n; i++) results[i] = one_##name(a[i], y); \
    }
#define IS_CHEAP(cost) ((cost) <= 2)

/* The same in blocks: one that holds an element beyond what one_<name> can do is computed by exact_one_<name>. */
#define LIMITED(tensors, name, T, R, parameters, beyond, exact, ...) \
    static inline __attribute__((always_inline)) R one_##name parameters { __VA_ARGS__; } \
    static inline R exact_one_##name parameters { exact; } \
    static inline __attribute__((always_inline)) int beyond_##name parameters { return beyond; } \
    static void span_##name(intptr_t n, char *const *in, char *out) { \
        TENSORS_##tensors(T); \
        R *results = (R *)out; \
        for (intptr_t start = 0; start < n; start += 256) { \
            intptr_t end = start + 256 < n ? start + 256 : n; \
            int any = 0; \
            for (intptr_t i = start; i < end; i++) any |= beyond_##name(ELEMENTS_##tensors); \
            if (any) { \
                for (intptr_t i = start; i < end; i++) results[i] = exact_one_##name(ELEMENTS_##tensors); \
            } else { \
                INDEPENDENT for (intptr_t i = start; i < end; i++) results[i] = one_##name(ELEMENTS_##tensors); \
            } \
        } \
    }

#define LOOP_1_0(dtypes, name, suffix, T, R, cost, ...) LOOP(1, 0, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_2_0(dtypes, name, suffix, T, R, cost, ...) \
    LOOP(2, 0, name##_##suffix, T, R, __VA_ARGS__) \
    BESIDE(name##_##suffix, T, R, cost)
#define LOOP_3_0(dtypes, name, suffix, T, R, cost, ...) LOOP(3, 0, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_1_1(dtypes, name, suffix, T, R, cost, ...) LOOP(1, 1, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_1_2(dtypes, name, suffix, T, R, cost, ...) LOOP(1, 2, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_1_3(dtypes, name, suffix, T, R, cost, ...) LOOP(1, 3, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_2_1(dtypes, name, suffix, T, R, cost, ...) LOOP(2, 1, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_2_2(dtypes, name, suffix, T, R, cost, ...) LOOP(2, 2, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_2_3(dtypes, name, suffix, T, R, cost, ...) LOOP(2, 3, name##_##suffix, T, R, __VA_ARGS__)
#define LOOP_3_1(dtypes, name, suffix, T, R, cost, ...) LOOP(3, 1, name##_##suffix, T, R, __VA_ARGS__)
#define LIMITED_1_0(dtypes, name, suffix, T, R, cost, ...) LIMITED(1, name##_##suffix, T, R, __VA_ARGS__)
#define LIMITED_2_0(dtypes, name, suffix, T, R, cost, ...) \
    LIMITED(2, name##_##suffix, T, R, __VA_ARGS__) \
    BESIDE(name##_##suffix, T, R, cost)
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

#ifdef LOOPS_f32
#include "elementwise/elementwise_halves.h"
#endif

/* -- rows: for each line one per dtype that the loop serves; only the result of a `bool8` is of another dtype -- */
#define RESULT_bool8(dtype) BOOL
#define RESULT_float(dtype) dtype
#define RESULT_double(dtype) dtype
#define RESULT_int8_t(dtype) dtype
#define RESULT_int16_t(dtype) dtype
#define RESULT_int32_t(dtype) dtype
#define RESULT_int64_t(dtype) dtype
#define RESULT_uint8_t(dtype) dtype
#define RESULT_uint16_t(dtype) dtype
#define RESULT_uint32_t(dtype) dtype
#define RESULT_uint64_t(dtype) dtype
#define TYPED_ROW(first, second, third, s, t, D, halves, name, suffix, tensors, numbers, R, cost) \
    {#name, tensors, numbers, cost, {TYPES_##tensors(first, second, third, s, t), RESULT_##R(D)}, span_##name##_##suffix, halves, \
     BESIDE_##tensors##_##numbers(name##_##suffix, cost), 0, NULL, NULL},
#define BESIDE_1_0(name, cost) NULL
#define BESIDE_2_0(name, cost) IS_CHEAP(cost) ? beside_##name : NULL
#define BESIDE_3_0(name, cost) NULL
#define BESIDE_1_1(name, cost) NULL
#define BESIDE_1_2(name, cost) NULL
#define BESIDE_1_3(name, cost) NULL
#define BESIDE_2_1(name, cost) NULL
#define BESIDE_2_2(name, cost) NULL
#define BESIDE_2_3(name, cost) NULL
#define BESIDE_3_1(name, cost) NULL
#define TYPES_1(first, second, third, s, t) first, s, t, t, t
#define TYPES_2(first, second, third, s, t) first, second, s, t, t
#define TYPES_3(first, second, third, s, t) first, second, third, s, t
#define ROW(D, ...) TYPED_ROW(D, D, D, D, D, D, NULL, __VA_ARGS__)
#define HALVES(D, name, suffix, tensors, numbers, R, cost) HALVES_##R(D, name##_##suffix, cost)
#define HALVES_bool8(D, name, cost) NULL
#define HALVES_float(D, name, cost) cost <= CHEAP ? halves_##name##_##D : NULL
#define MIXED(first, second, name, suffix, tensors, numbers, R, cost) \
    MIXED_##tensors##_##numbers(first, second, R, name##_##suffix, cost)
#define MIXED_2_0(first, second, R, name, cost) HALVES_##R(first##_##second, name, cost)
#define MIXED_2_1(...) NULL
#define MIXED_2_2(...) NULL
#define MIXED_2_3(...) NULL
#define MIXED_3_0(...) NULL
#define MIXED_3_1(...) NULL

/* Half types are computed in float32, and beside them some tensors, and numbers, may be float32 as they are. */
#define HALF(D, name, suffix, tensors, numbers, ...) \
    BESIDE_NUMBERS_##numbers(HALF_##tensors, D, name, suffix, tensors, numbers, __VA_ARGS__)
#define BESIDE_NUMBERS_0(rows, D, ...) rows(D, FLOAT32, FLOAT32, __VA_ARGS__)
#define BESIDE_NUMBERS_1(rows, D, ...) rows(D, FLOAT32, FLOAT32, __VA_ARGS__) rows(D, D, FLOAT32, __VA_ARGS__)
#define BESIDE_NUMBERS_2(rows, D, ...) \
    BESIDE_NUMBERS_1(rows, D, __VA_ARGS__) rows(D, FLOAT32, D, __VA_ARGS__) rows(D, D, D, __VA_ARGS__)
#define BESIDE_NUMBERS_3(rows, D, ...) rows(D, FLOAT32, FLOAT32, __VA_ARGS__) rows(D, D, D, __VA_ARGS__)
#define HALF_1(D, s, t, ...) TYPED_ROW(D, D, D, s, t, D, HALVES(D, __VA_ARGS__), __VA_ARGS__)
#define HALF_2(D, s, t, ...) \
    TYPED_ROW(D, D, D, s, t, D, HALVES(D, __VA_ARGS__), __VA_ARGS__) \
    TYPED_ROW(D, FLOAT32, D, s, t, D, MIXED(D, FLOAT32, __VA_ARGS__), __VA_ARGS__) \
    TYPED_ROW(FLOAT32, D, D, s, t, D, MIXED(FLOAT32, D, __VA_ARGS__), __VA_ARGS__)
#define HALF_3(D, s, t, ...) \
    HALF_2(D, s, t, __VA_ARGS__) \
    TYPED_ROW(D, D, FLOAT32, s, t, D, NULL, __VA_ARGS__) \
    TYPED_ROW(D, FLOAT32, FLOAT32, s, t, D, NULL, __VA_ARGS__) \
    TYPED_ROW(FLOAT32, D, FLOAT32, s, t, D, NULL, __VA_ARGS__) \
    TYPED_ROW(FLOAT32, FLOAT32, D, s, t, D, NULL, __VA_ARGS__)

#define FLOATS(...) ROW(FLOAT32, __VA_ARGS__) HALF(FLOAT16, __VA_ARGS__) HALF(BFLOAT16, __VA_ARGS__)
#define DOUBLE(...) ROW(FLOAT64, __VA_ARGS__)
#define BOOLS(...) ROW(BOOL, __VA_ARGS__)
#define SIGNED8(...) ROW(INT8, __VA_ARGS__)
#define SIGNED16(...) ROW(INT16, __VA_ARGS__)
#define SIGNED32(...) ROW(INT32, __VA_ARGS__)
#define SIGNED64(...) ROW(INT64, __VA_ARGS__)
#define UNSIGNED8(...) ROW(UINT8, __VA_ARGS__)
#define UNSIGNED16(...) ROW(UINT16, __VA_ARGS__)
#define UNSIGNED32(...) ROW(UINT32, __VA_ARGS__)
#define UNSIGNED64(...) ROW(UINT64, __VA_ARGS__)
#define INTEGERS8(...) SIGNED8(__VA_ARGS__) UNSIGNED8(__VA_ARGS__)
#define INTEGERS16(...) SIGNED16(__VA_ARGS__) UNSIGNED16(__VA_ARGS__)
#define INTEGERS32(...) SIGNED32(__VA_ARGS__) UNSIGNED32(__VA_ARGS__)
#define INTEGERS64(...) SIGNED64(__VA_ARGS__) UNSIGNED64(__VA_ARGS__)
#define LOOP_1_0(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 1, 0, R, cost)
#define LOOP_2_0(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 2, 0, R, cost)
#define LOOP_3_0(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 3, 0, R, cost)
#define LOOP_1_1(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 1, 1, R, cost)
#define LOOP_1_2(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 1, 2, R, cost)
#define LOOP_1_3(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 1, 3, R, cost)
#define LOOP_2_1(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 2, 1, R, cost)
#define LOOP_2_2(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 2, 2, R, cost)
#define LOOP_2_3(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 2, 3, R, cost)
#define LOOP_3_1(dtypes, name, suffix, T, R, cost, ...) dtypes(name, suffix, 3, 1, R, cost)
#define LIMITED_1_0 LOOP_1_0
#define LIMITED_2_0 LOOP_2_0
