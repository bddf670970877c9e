// Tiles that are transposed in shared memory: an operand whose neighbours lie along columns is read along its columns,
// and the result is written along its rows.
//
// Lines of a tile begin one element after a multiple of its side, so that neither reading lines nor columns meets the
// same bank twice. 8 lanes of a warp read or write 16 bytes each, or 32 one element each where packs do not fit.

#include "elementwise/elementwise.cuh"

// The tiles of matrices, counted by `layout`: batches of matrices, rows of tiles, columns of tiles.
template <class Size> struct Tiles {
    int64 transposed; // bits of operands whose neighbours lie along columns
    int64 packed; // whether all rows and columns consist of packs
    Size rows, columns;
    Size down[MAX_OPERANDS], across[MAX_OPERANDS]; // distances along columns and along rows
    Layout<Size> layout;
};

#define TILE_THREADS 256 // of a block; THREADS in launch.py

// The side of a tile by the elements of a pack; as in walks.py.
template <int width> struct Side {
    static const int value = width > 4 ? 64 : width > 1 ? 32 : 16;
};

template <class Element, int side> struct Tile {
    Element lines[side][side + 1];
};

// Calls visit(line, first) for all runs of `count` elements of the lines that there are, one of them for each thread.
template <int side, int count, class Visit> __device__ void for_runs(int lines, int length, Visit visit)
{
    const int fitting = side / count, most = count == 1 ? 32 : 8, lanes = fitting < most ? fitting : most;
#pragma unroll 4
    for (int start = 0; start < side * side / count; start += TILE_THREADS) {
        int i = start + threadIdx.x, line = i / lanes % side, first = (i / (lanes * side) * lanes + i % lanes) * count;
        if (line < lines && first < length)
            visit(line, first);
    }
}

// A block's tile: where it lies in each of the operands, and how many rows and columns it has.
template <int side, int operands, class Size> struct TilePlace {
    const Tiles<Size> &tiles;
    Size first[1][operands];
    int rows, columns;

    __device__ TilePlace(const Tiles<Size> &tiles) : tiles(tiles)
    {
        const Layout<Size> &layout = tiles.layout;
        locate(layout, blockIdx.x, 0, first);
        Size rest = blockIdx.x;
        Size column = take_innermost(rest, layout.sizes[layout.dims - 1]) * side;
        Size row = take_innermost(rest, layout.sizes[layout.dims - 2]) * side;
        rows = tiles.rows - row < side ? tiles.rows - row : side;
        columns = tiles.columns - column < side ? tiles.columns - column : side;
    }

    __device__ Size at(int operand, int row, int column) const
    {
        return first[0][operand] + row * tiles.down[operand] + column * tiles.across[operand];
    }

    // Columns of an operand become lines of a tile, if its neighbours lie along columns.
    template <int count, class Element>
    __device__ void turn(int operand, const Element *from, Tile<Element, side> &tile) const
    {
        if (tiles.transposed >> operand & 1)
            for_runs<side, count>(columns, rows, [&](int column, int row) {
                Element values[count];
                fetch(from + at(operand, row, column), 0, count, false, true, values);
                for (int k = 0; k < count; ++k)
                    tile.lines[column][row + k] = values[k];
            });
    }

    // Neighbours in a row of an operand: from its tile, next to each other, or one for all of several.
    template <int count, class Element>
    __device__ void read(int operand, const Element *from, const Tile<Element, side> &tile, int row, int column,
                         Element (&values)[count]) const
    {
        if (tiles.transposed >> operand & 1)
            for (int k = 0; k < count; ++k)
                values[k] = tile.lines[column + k][row];
        else
            fetch(from + at(operand, row, column), 0, count, count > 1 && tiles.across[operand] == 0, true, values);
    }
};
