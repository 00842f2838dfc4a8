// The kernels for one instruction set: compiled once for each, with FW_ISA its name and FW_BYTES its vector
// length.
#include <utility>

#include "isa.h"

#define FW_TEXT_OF(name) #name
#define FW_TEXT(name) FW_TEXT_OF(name)

namespace fw {
namespace FW_ISA {
namespace {

#include "vec.h"
#include "tile.h"
#include "pack.h"
#include "scatter.h"
#include "columns.h"
#include "elementwise.h"
#include "panel.h"
#include "settle.h"
#include "nearest.h"
#include "bounded.h"
#include "transfer.h"
#include "closer.h"
#include "finish.h"
#include "unit.h"
#include "sparse.h"
#include "explog.h"
#include "density.h"
#include "weigh.h"
#include "mixture.h"
#include "similarity.h"

template <class T>
constexpr RowKernels<T> row_kernels = {nearest<T>,   nearest_bounded<T>, transfer<T>,
                                       residuals<T>, extent<T>,          closer<T>};

template <class In> constexpr MixtureKernels<In> mixture_kernels = {mixture_step<In>, mixture_logs<In>};

}  // namespace

extern const Kernels kernels = {
    FW_TEXT(FW_ISA), panel_targets, row_kernels<float>, row_kernels<double>, scatter_f32,   scatter_f64,    merge_moments,  columns<float>,
    columns<double>, finite<float>, finite<double>, centred<float>, centred<double>,
    sparse_table<float>, sparse_table<double>,
    mixture_kernels<float>, mixture_kernels<double>,
    similarity,
};

}  // namespace FW_ISA
}  // namespace fw
