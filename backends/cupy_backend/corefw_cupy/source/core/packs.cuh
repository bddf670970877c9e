// Neighbouring elements that are read and written at once, and the parts of a line that blocks share.

template <class Element, int width> struct alignas(sizeof(Element) * width) Packed {
    Element values[width];
};

// How many elements of a size are read at once.
template <class Element, int most> struct Together {
    static const int fitting = 16 / sizeof(Element), value = fitting < most ? fitting : most;
};

// A pack that lies where all of it can be read at once.
template <int width, class Element> __device__ Packed<Element, width> load(const Element *from)
{
    return *(const Packed<Element, width> *)from;
}

// A pack that may lie anywhere.
template <int width, class Element> __device__ Packed<Element, width> read(const Element *from)
{
    if ((uint64)from % sizeof(Packed<Element, width>) == 0)
        return load<width>(from);
    Packed<Element, width> pack;
#pragma unroll
    for (int k = 0; k < width; ++k)
        pack.values[k] = from[k];
    return pack;
}

template <int width, class Element> __device__ void write(Element *to, const Packed<Element, width> &pack)
{
    if ((uint64)to % sizeof(pack) == 0) {
        *(Packed<Element, width> *)to = pack;
        return;
    }
#pragma unroll
    for (int k = 0; k < width; ++k)
        to[k] = pack.values[k];
}

// The part of `n` elements that is this block's, of those in a column of the grid that share them; a multiple of `unit`
// but for the last.
struct Part {
    int64 begin, end;

    __device__ Part(int64 n, int64 unit) : begin(0), end(n)
    {
        if (gridDim.y == 1)
            return;
        int64 units = (n + unit - 1) / unit, share = (units + gridDim.y - 1) / gridDim.y * unit;
        begin = blockIdx.y * share;
        end = begin + share < n ? begin + share : n;
    }
};
