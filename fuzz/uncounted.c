/* For programs that are compiled to count their steps and do not link cost.c: see cost.h. */
void __sanitizer_cov_trace_pc(void);

#ifdef __clang__
__attribute__((no_sanitize("coverage")))
#else
__attribute__((no_sanitize_coverage))
#endif
void __sanitizer_cov_trace_pc(void)
{
}
