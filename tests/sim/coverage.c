#include "coverage.h"

#include <assert.h>
#include <string.h>

static struct {
    bool has_front;
    struct coverage_counts counts;
} coverage;

void coverage_begin(bool has_front)
{
    memset(&coverage, 0, sizeof(coverage));
    coverage.has_front = has_front;
}

void coverage_add_at(enum coverage what, bool in_front, uint64_t count)
{
    assert(what < COVERAGES);
    coverage.counts.of[what][in_front] += count;
}

void coverage_add(enum coverage what)
{
    coverage_add_at(what, coverage.has_front, 1);
}

const struct coverage_counts *coverage_counts(void)
{
    return &coverage.counts;
}

const char *coverage_name(enum coverage what)
{
#define COVERAGE_NAME(id, name) name,
    static const char *const names[COVERAGES] = {COVERAGE_TABLE(COVERAGE_NAME)};
#undef COVERAGE_NAME
    return names[what];
}
