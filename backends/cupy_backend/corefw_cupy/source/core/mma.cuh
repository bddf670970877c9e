// Tensor cores by inline PTX: products of fragments of matrices that the lanes of a warp hold together, and how those
// of 16 bits come from shared memory. The emulated twins exchange fragments as the PTX ISA lays them out.
//
// With group = lane / 4 and pair = lane % 4, registers hold two neighbours of 16 bits, the first in the lower half:
//   A (16 x 16): rows group, group + 8, group, group + 8; columns 2 pair + 0, 0, 8, 8
//   B (16 x 8):  rows 2 pair + 0, 8; column group
//   C (16 x 8, one float each): rows group, group, group + 8, group + 8; columns 2 pair + 0, 1, 0, 1
// Of tf32, registers hold one number:
//   A (16 x 8): rows group, group + 8, group, group + 8; columns pair + 0, 0, 4, 4
//   B (8 x 8):  rows pair + 0, 4; column group

#include "core/types.cuh"

// A float32 rounded to TensorFloat-32, which has 10 bits of mantissa: to nearest, ties away from zero.
struct tf32 {
    uint32 bits;

    tf32() = default;

    __device__ tf32(float value)
    {
#ifdef EMULATED
        bits = value != value ? 0x7fffffff : (__float_as_uint(value) + 0x1000) & ~0x1fffu;
#else
        asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
#endif
    }
};

#ifdef EMULATED

// What all lanes of the thread's warp give, by lane.
template <class Value> struct Gathered {
    Value of[32];

    Gathered(Value value)
    {
        static_assert(sizeof value <= sizeof emulator::exchanged[0]);
        int thread = emulator::current->thread, warp = thread / 32 * 32;
        memcpy(emulator::exchanged[thread], &value, sizeof value);
        emulator::wait_warp(0xffffffffu);
        for (int lane = 0; lane < 32; ++lane)
            memcpy(&of[lane], emulator::exchanged[warp + lane], sizeof value);
        emulator::wait_warp(0xffffffffu);
    }
};

// Numbers as registers hold them: how many, and which of them is `which`.
template <class Half> struct Packed {
    static const int count = 2;
    static float number(uint32 held, int which)
    {
        Half half;
        half.bits = held >> 16 * which;
        return half;
    }
};
template <> struct Packed<tf32> {
    static const int count = 1;
    static float number(uint32 held, int) { return __uint_as_float(held & ~0x1fffu); }
};

template <class Half> uint32 pack(float first, float second)
{
    return Half(first).bits | (uint32)Half(second).bits << 16;
}

template <class Number> void multiply_fragments(float (&c)[4], const uint32 (&a)[4], const uint32 (&b)[2])
{
    struct Operands {
        uint32 a[4], b[2];
    } own = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    Gathered<Operands> lanes(own);
    const int count = Packed<Number>::count, half = 4 * count; // of the numbers that are summed over
    int group = emulator::lane() / 4, pair = emulator::lane() % 4;
    for (int i = 0; i < 4; ++i) {
        int row = group + i / 2 * 8, column = 2 * pair + i % 2;
        for (int k = 0; k < 2 * half; ++k) {
            int holder = k % half / count;
            uint32 left = lanes.of[row % 8 * 4 + holder].a[k / half * 2 + row / 8];
            uint32 right = lanes.of[column * 4 + holder].b[k / half];
            c[i] += Packed<Number>::number(left, k % count) * Packed<Number>::number(right, k % count);
        }
    }
}

template <bool transposed, class Half> void load_fragments(uint32 (&found)[4], const Half *row)
{
    Gathered<const Half *> rows(row);
    int group = emulator::lane() / 4, pair = emulator::lane() % 4;
    for (int i = 0; i < 4; ++i) {
        const Half *const *matrix = rows.of + 8 * i;
        Half first = transposed ? matrix[2 * pair][group] : matrix[group][2 * pair];
        Half second = transposed ? matrix[2 * pair + 1][group] : matrix[group][2 * pair + 1];
        found[i] = first.bits | (uint32)second.bits << 16;
    }
}

// Copies that are under way, by thread: what they will write is spoilt until the thread waits for them.
struct Copy {
    void *to;
    const void *from;
    bool exists;
};
inline std::vector<std::vector<Copy>> under_way[emulator::MOST_THREADS]; // by group, of which the last one is open

inline void copy_later(void *to, const void *from, bool exists)
{
    auto &groups = under_way[emulator::current->thread];
    if (groups.empty())
        groups.emplace_back();
    groups.back().push_back({to, from, exists});
    memset(to, 0xff, 16);
}
inline void end_of_copies()
{
    under_way[emulator::current->thread].emplace_back();
}
template <int left> void wait_for_copies()
{
    auto &groups = under_way[emulator::current->thread];
    while (groups.size() > left + 1) {
        for (const Copy &copy : groups.front())
            copy.exists ? memcpy(copy.to, copy.from, 16) : memset(copy.to, 0, 16);
        groups.erase(groups.begin());
    }
}

#else

template <class Number> struct Tensor; // what differs between the types

template <> struct Tensor<float16> {
    __device__ static void multiply(float (&c)[4], const uint32 (&a)[4], const uint32 (&b)[2])
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    __device__ static uint32 pack(float first, float second)
    {
        uint32 pair;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
        return pair;
    }
};

template <> struct Tensor<bfloat16> {
    __device__ static void multiply(float (&c)[4], const uint32 (&a)[4], const uint32 (&b)[2])
    {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    __device__ static uint32 pack(float first, float second)
    {
        uint32 pair;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
        return pair;
    }
};

template <> struct Tensor<tf32> {
    __device__ static void multiply(float (&c)[4], const uint32 (&a)[4], const uint32 (&b)[2])
    {
        asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
};

// Two numbers as neighbours in a register.
template <class Half> __device__ uint32 pack(float first, float second)
{
    return Tensor<Half>::pack(first, second);
}

// c += a b.
template <class Number> __device__ void multiply_fragments(float (&c)[4], const uint32 (&a)[4], const uint32 (&b)[2])
{
    Tensor<Number>::multiply(c, a, b);
}

__device__ inline uint32 shared_address(const void *pointer)
{
    return (uint32)__cvta_generic_to_shared(pointer);
}

// Four 8 x 8 matrices: lane l names row l % 8 of matrix l / 8 (16 bytes, aligned), and gets of each matrix elements
// 2 pair and 2 pair + 1 of row group, or if `transposed` of column group.
template <bool transposed, class Half> __device__ void load_fragments(uint32 (&found)[4], const Half *row)
{
    if (transposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(found[0]), "=r"(found[1]), "=r"(found[2]), "=r"(found[3])
                     : "r"(shared_address(row))
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(found[0]), "=r"(found[1]), "=r"(found[2]), "=r"(found[3])
                     : "r"(shared_address(row))
                     : "memory");
}

// Begin to copy 16 aligned bytes into shared memory, zeros if they do not exist. Copies up to an end_of_copies() are a
// group; wait_for_copies<n>() waits until at most the last n groups are under way.
__device__ inline void copy_later(void *to, const void *from, bool exists)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(exists ? 16 : 0)
                 : "memory");
}
__device__ inline void end_of_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int left> __device__ void wait_for_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

#endif
