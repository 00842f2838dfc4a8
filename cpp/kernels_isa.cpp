// The kernels for one instruction set. Compiled once per set, with FW_ISA its name and FW_BYTES its vector size.
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
#include "transpose.h"
#include "panel.h"
#include "observed.h"
#include "exact_ties.h"
#include "exact_sums.h"
#include "fixed_sums.h"
#include "joining_rows.h"
#include "pack_targets.h"
#include "nearest.h"
#include "bounded.h"
#include "seeding.h"
#include "update_centres.h"
#include "unit_rows.h"
#include "sparse.h"
#include "explog.h"
#include "density.h"
#include "responsibility_sums.h"
#include "mixture.h"
#include "gaps.h"
#include "similarity.h"
#include "distance_sums.h"
#include "superpixels.h"

template <class T, bool observed>
constexpr RowKernels<T> row_kernels = {nearest<T, observed>,   nearest_bounded<T, observed>, move_rows<T, observed>, move_rows_fixed<T>,
                                       residuals<T, observed>, update_closest<T, observed>};

template <class In> constexpr MixtureKernels<In> mixture_kernels = {mixture_step<In>, mixture_logs<In>, step_gaps<In>,
                                                                   logs_gaps<In>};

}  // namespace

extern const Kernels kernels = {
    FW_TEXT(FW_ISA), panel_targets,
    row_kernels<float, false>, row_kernels<double, false>,
    row_kernels<float, true>, row_kernels<double, true>,
    {shift_target<float>, pack_targets<float>}, {shift_target<double>, pack_targets<double>},
    target_size, round_target, pack_targets<int>,
    scatter_f32, scatter_f64, merge_moments,
    columns<float>, columns<double>,
    finite<float>, finite<double>,
    centred<float>, centred<double>,
    sparse_table<float>, sparse_table<double>,
    mixture_kernels<float>, mixture_kernels<double>,
    similarity,
    distance_sums<float>, distance_sums<float, true>, distance_sums<double>, distance_sums<double, true>,
    assign_segments,
};

}  // namespace FW_ISA
}  // namespace fw
