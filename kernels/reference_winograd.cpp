#include "kernels/reference.h"

namespace tenon {
namespace {

using Shape = std::vector<int64_t>;
using Matrix = std::vector<std::vector<double>>;

/// Lavin and Gray 2016, section 4.
struct Matrices {
  Matrix inputs, weights, outputs;  // B', G, A'
};

Matrices matrices(int64_t m) {
  if (m == 2)
    return {{{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
            {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}},
            {{1, 1, 1, 0}, {0, 1, -1, -1}}};
  return {{{4, 0, -5, 0, 1, 0},
           {0, -4, -4, 1, 1, 0},
           {0, 4, -4, -1, 1, 0},
           {0, -2, -1, 2, 1, 0},
           {0, 2, -1, -2, 1, 0},
           {0, 4, 0, -5, 0, 1}},
          {{1. / 4, 0, 0},
           {-1. / 6, -1. / 6, -1. / 6},
           {-1. / 6, 1. / 6, -1. / 6},
           {1. / 24, 1. / 12, 1. / 6},
           {1. / 24, -1. / 12, 1. / 6},
           {0, 0, 1}},
          {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}}};
}

/// matrix * from * matrix'
Matrix on_both_sides(const Matrix& matrix, const Matrix& from) {
  const size_t out = matrix.size(), in = from.size();
  Matrix to(out, std::vector<double>(out, 0));
  for (size_t a = 0; a < out; ++a)
    for (size_t b = 0; b < out; ++b)
      for (size_t i = 0; i < in; ++i)
        for (size_t j = 0; j < in; ++j) to[a][b] += matrix[a][i] * from[i][j] * matrix[b][j];
  return to;
}

/// Of the tile at (th, tw), channel `c`; zeros outside.
Matrix tile_of(const RefArray& x, const Shape& tile, int64_t c, int64_t m, int64_t pad) {
  const int64_t t = m + 2, block = x.shape[4];
  Matrix d(t, std::vector<double>(t, 0));
  for (int64_t r = 0; r < t; ++r)
    for (int64_t q = 0; q < t; ++q) {
      const int64_t h = tile[1] * m + r - pad, w = tile[2] * m + q - pad;
      if (h >= 0 && w >= 0 && h < x.shape[2] && w < x.shape[3])
        d[r][q] = x[{tile[0], c / block, h, w, c % block}];
    }
  return d;
}

/// Adds U * V of one channel to the products of every output channel.
void add_products(std::vector<Matrix>& sums, const RefArray& u, const Matrix& v, int64_t c) {
  const int64_t t = u.shape[0], block = u.shape[4];
  for (size_t oc = 0; oc < sums.size(); ++oc)
    for (int64_t a = 0; a < t; ++a)
      for (int64_t b = 0; b < t; ++b) {
        const auto o = static_cast<int64_t>(oc);
        sums[oc][a][b] += v[a][b] * u[{a, b, o / block, c, o % block}];
      }
}

}  // namespace

RefArray ref_winograd_weights(const RefArray& w, int64_t m, int64_t block) {
  const int64_t t = m + 2, c_out = w.shape[0], c_in = w.shape[1];
  RefArray u({t, t, (c_out + block - 1) / block, c_in, block});
  each_point({c_out, c_in}, [&](const Shape& at) {
    Matrix g(3, std::vector<double>(3));
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) g[i][j] = w[{at[0], at[1], i, j}];
    const Matrix to = on_both_sides(matrices(m).weights, g);
    for (int64_t a = 0; a < t; ++a)
      for (int64_t b = 0; b < t; ++b) u[{a, b, at[0] / block, at[1], at[0] % block}] = to[a][b];
  });
  return u;
}

RefArray ref_winograd(const RefArray& x, const RefArray& u, const RefArray* bias, int64_t pad,
                      int64_t c_out) {
  const int64_t t = u.shape[0], m = t - 2, c_in = u.shape[3], block = x.shape[4];
  const int64_t rows = window_extent(x.shape[2], 3, 1, 1, 2 * pad),
                columns = window_extent(x.shape[3], 3, 1, 1, 2 * pad);
  RefArray y({x.shape[0], u.shape[2], rows, columns, block});
  each_point({x.shape[0], (rows + m - 1) / m, (columns + m - 1) / m}, [&](const Shape& tile) {
    std::vector<Matrix> sums(c_out, Matrix(t, std::vector<double>(t, 0)));
    for (int64_t c = 0; c < c_in; ++c)
      add_products(sums, u, on_both_sides(matrices(m).inputs, tile_of(x, tile, c, m, pad)), c);
    for (int64_t oc = 0; oc < c_out; ++oc) {
      const Matrix pixels = on_both_sides(matrices(m).outputs, sums[oc]);
      each_point({m, m}, [&](const Shape& at) {
        const int64_t h = tile[1] * m + at[0], w = tile[2] * m + at[1];
        if (h < rows && w < columns)
          y[{tile[0], oc / block, h, w, oc % block}] =
              pixels[at[0]][at[1]] + (bias ? bias->values[oc] : 0);
      });
    }
  });
  return y;
}

}  // namespace tenon
