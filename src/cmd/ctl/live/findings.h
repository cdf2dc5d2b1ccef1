/*
 * What `vigil doctor` has found: for each thing that was examined a level, a sentence, and what to
 * do about it. One owner.
 */
#ifndef VIGIL_CMD_CTL_LIVE_FINDINGS_H
#define VIGIL_CMD_CTL_LIVE_FINDINGS_H

#include "base/macros.h"

#include <stdbool.h>
#include <stdio.h>

enum finding_level { FINDING_GOOD, FINDING_WARNING, FINDING_BAD };

enum { FINDINGS_MAX = 1024, FINDING_TEXT_BYTES = 320 };

struct finding {
    enum finding_level level;
    char where[128];  /* an endpoint, or "cluster" */
    const char *what; /* "disk"; a constant */
    char text[FINDING_TEXT_BYTES];
    const char *advice; /* a constant; NULL: nothing needs to be done */
};

struct findings {
    struct finding *all;
    size_t count;
    const char *where; /* place of the findings that are added now; borrowed */
};

void findings_fini(struct findings *findings);

/* Findings beyond FINDINGS_MAX are dropped. advice is for what is not good. */
void findings_add(struct findings *findings, enum finding_level level, const char *what,
                  const char *advice, const char *format, ...) PRINTF_LIKE(5, 6);
size_t findings_count(const struct findings *findings, enum finding_level level);

/* The worst first. */
void findings_write(const struct findings *findings, FILE *to, bool colours);
void findings_write_json(const struct findings *findings, FILE *to);

#endif
