/* Put at the end of launcher.c: functions inside it, for tests. */

int acme_test_overlap(const memory_view *a, const memory_view *b);
int acme_test_overlap(const memory_view *a, const memory_view *b) {
  return overlap(a, b);
}

int acme_test_overlaps_itself(const memory_view *of);
int acme_test_overlaps_itself(const memory_view *of) {
  return overlaps_itself(of);
}

void acme_test_attention_schedule(const acme_kernel *kernel, const attention_size *size,
                                  int64_t multiprocessors, attention_schedule *schedule);
void acme_test_attention_schedule(const acme_kernel *kernel, const attention_size *size,
                                  int64_t multiprocessors, attention_schedule *schedule) {
  plan_attention(kernel, size, multiprocessors, schedule);
}

void acme_test_gemm_schedule(const acme_kernel *kernel, const gemm_size *size,
                             int64_t multiprocessors, gemm_schedule *schedule);
void acme_test_gemm_schedule(const acme_kernel *kernel, const gemm_size *size,
                             int64_t multiprocessors, gemm_schedule *schedule) {
  plan_gemm(kernel, size, multiprocessors, schedule);
}
