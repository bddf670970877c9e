/* The processor's tiles, AMX: eight registers of 16 rows of 64 bytes, and their products.
 *
 * TILE_ZERO(t), TILE_LOAD(t, from, step), TILE_STORE(t, to, step): registers by number, 0 to 7; rows `step` bytes apart.
 * TILE_LOAD_ONCE: a load that asks the first cache to keep other things.
 * TILE_PRODUCT_BF16(c, a, b): c[16][16], float, grows by the products of a[16][32] and b[16][16][2], pairs along k.
 * TILE_PRODUCT_I8(c, a, b): c[16][16], int32, grows by those of a[16][64] and b[16][16][4].
 * A function that uses them is a TILE_FUNCTION, declares TILE_REGISTERS, and runs between tiles_begin and tiles_end.
 *
 * Where the compiler makes no such instructions, or a sanitizer could not see what they read, functions stand in for
 * them, bit by bit: so that what is made of tiles is tested on every machine. */
#ifndef COREFW_TILES_H
#define COREFW_TILES_H

#include "core/bits.h"

#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#endif

enum { TILE_SIDE = 16, TILE_BYTES = 1024 };

#if defined(__AVX512F__) && !defined(SANITIZED)
#include <immintrin.h>

enum { TILES_ARE_EMULATED = 0 };
#define TILE_FUNCTION __attribute__((noinline, target("amx-tile,amx-bf16,amx-int8,avx512bf16")))
#define TILE_REGISTERS __asm__ volatile("" ::: "memory") /* the instructions do not tell what they read */
#define TILE_ZERO(t) _tile_zero(t)
#define TILE_LOAD(t, from, step) _tile_loadd(t, from, step)
#define TILE_LOAD_ONCE(t, from, step) _tile_stream_loadd(t, from, step)
#define TILE_STORE(t, to, step) _tile_stored(t, to, step)
#define TILE_PRODUCT_BF16(c, a, b) _tile_dpbf16ps(c, a, b)
#define TILE_PRODUCT_I8(c, a, b) _tile_dpbssd(c, a, b)

static __attribute__((unused)) TILE_FUNCTION void tiles_begin(void) {
    struct {
        uint8_t palette, start, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes = {.palette = 1};
    for (int t = 0; t < 8; t++) shapes.row_bytes[t] = 64, shapes.rows[t] = TILE_SIDE;
    TILE_REGISTERS;
    _tile_loadconfig(&shapes);
}

/* From here on the system need not keep the registers when it changes threads. */
static __attribute__((unused)) TILE_FUNCTION void tiles_end(void) { _tile_release(); }

#else
enum { TILES_ARE_EMULATED = 1 };
union tile {
    float f32[16][16];
    int32_t i32[16][16];
    uint32_t u32[16][16];
    int8_t i8[16][64];
};

#define TILE_FUNCTION __attribute__((noinline))
#define TILE_REGISTERS union tile tiles[8]
#define TILE_ZERO(t) memset(tiles + t, 0, TILE_BYTES)
#define TILE_LOAD(t, from, step) tile_load(tiles + t, from, step)
#define TILE_LOAD_ONCE TILE_LOAD
#define TILE_STORE(t, to, step) tile_store(tiles + t, to, step)
#define TILE_PRODUCT_BF16(c, a, b) tile_product_bf16(tiles + c, tiles + a, tiles + b)
#define TILE_PRODUCT_I8(c, a, b) tile_product_i8(tiles + c, tiles + a, tiles + b)

static inline void tiles_begin(void) {}
static inline void tiles_end(void) {}

static inline void tile_load(union tile *t, const void *from, ssize_t step) {
    for (int i = 0; i < TILE_SIDE; i++) memcpy(t->u32[i], (const char *)from + i * step, 64);
}

static inline void tile_store(const union tile *t, void *to, ssize_t step) {
    for (int i = 0; i < TILE_SIDE; i++) memcpy((char *)to + i * step, t->u32[i], 64);
}

/* Numbers below the normal ones are zeros, in what the instruction reads and in each sum. */
static inline float tile_normal(float x) {
    uint32_t bits = bits_f32(x);
    return bits & 0x7F800000 ? x : from_bits_f32(bits & 0x80000000);
}

/* Of each pair the products are added up apart, then both sums to c. */
static inline void tile_product_bf16(union tile *c, const union tile *a, const union tile *b) {
    for (int i = 0; i < TILE_SIDE; i++)
        for (int j = 0; j < TILE_SIDE; j++) {
            float even = 0, odd = 0;
            for (int l = 0; l < 16; l++) {
                uint32_t x = a->u32[i][l], y = b->u32[l][j];
                even = tile_normal(__builtin_fmaf(tile_normal(from_bits_f32(x << 16)),
                                                  tile_normal(from_bits_f32(y << 16)), even));
                odd = tile_normal(__builtin_fmaf(tile_normal(from_bits_f32(x & 0xFFFF0000)),
                                                 tile_normal(from_bits_f32(y & 0xFFFF0000)), odd));
            }
            c->f32[i][j] = tile_normal(tile_normal(c->f32[i][j]) + tile_normal(even + odd));
        }
}

static inline void tile_product_i8(union tile *c, const union tile *a, const union tile *b) {
    for (int i = 0; i < TILE_SIDE; i++)
        for (int j = 0; j < TILE_SIDE; j++)
            for (int l = 0; l < 64; l++)
                c->u32[i][j] += (uint32_t)(a->i8[i][l] * b->i8[l / 4][4 * j + l % 4]); /* may overflow */
}
#endif

#endif
