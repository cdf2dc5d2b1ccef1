/*
 * Finds the cluster's compact revision, which no call returns: a read of an older revision is
 * refused as compacted, and one of this revision or a later one is not. If the one that is known is
 * still readable, one question is enough; otherwise the rest is bisected.
 *
 *     refused … refused │ readable … readable
 *               low ────┴──── high             until they are neighbours
 */
#ifndef VIGIL_MIRROR_FOLLOW_COMPACT_SEARCH_H
#define VIGIL_MIRROR_FOLLOW_COMPACT_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

struct compact_search {
    int64_t known; /* before the search; 0: none */
    int64_t low;   /* refused, or older than everything that is of interest */
    int64_t high;  /* readable, as far as is known */
    bool asked;    /* the first question was answered */
};

/* The newest revision of the cluster, at which the search ends, is not older than known. */
void compact_search_init(struct compact_search *search, int64_t known, int64_t newest);
/* The next revision to read; 0: the search has ended. */
int64_t compact_search_next(const struct compact_search *search);
void compact_search_answer(struct compact_search *search, bool readable);
/* At the end: the compact revision; 0: nothing was compacted. */
int64_t compact_search_result(const struct compact_search *search);

#endif
