// The compiled module foldwise.kernels._core. Each source file registers its own functions.
#include <nanobind/nanobind.h>

#include "isa.h"

void register_row_kernels(nanobind::module_ &);
void register_merge_columns(nanobind::module_ &);
void register_arrow(nanobind::module_ &);
void register_parquet(nanobind::module_ &);
void register_targets(nanobind::module_ &);
void register_sparse(nanobind::module_ &);
void register_mixture(nanobind::module_ &);
void register_mixture_gaps(nanobind::module_ &);
void register_em_run(nanobind::module_ &);
void register_digest(nanobind::module_ &);
void register_dip(nanobind::module_ &);
void register_quick_kmeans(nanobind::module_ &);
void register_similarity(nanobind::module_ &);
void register_brief_starts(nanobind::module_ &);
void register_small_table(nanobind::module_ &);
void register_distance_sums(nanobind::module_ &);
void register_missing_cells(nanobind::module_ &);
void register_subsets(nanobind::module_ &);
void register_quantize(nanobind::module_ &);
void register_superpixels(nanobind::module_ &);
void register_segment_shapes(nanobind::module_ &);
void register_products(nanobind::module_ &);
void register_flag(nanobind::module_ &);
void register_reused_memory(nanobind::module_ &);

NB_MODULE(_core, m) {
    fw::active_kernels();  // chosen here, where no fork can leave its initialisation half done in a child
    m.doc() = "Compiled kernels; foldwise.kernels.reference says what each computes.";
    register_row_kernels(m);
    register_merge_columns(m);
    register_arrow(m);
    register_parquet(m);
    register_targets(m);
    register_sparse(m);
    register_mixture(m);
    register_mixture_gaps(m);
    register_em_run(m);
    register_digest(m);
    register_dip(m);
    register_quick_kmeans(m);
    register_similarity(m);
    register_brief_starts(m);
    register_small_table(m);
    register_distance_sums(m);
    register_missing_cells(m);
    register_subsets(m);
    register_quantize(m);
    register_superpixels(m);
    register_segment_shapes(m);
    register_products(m);
    register_flag(m);
    register_reused_memory(m);
}
