/* What people and programs are told of an import: how far it is, and what came of it. */
#ifndef VIGIL_CMD_IMPORT_REPORT_H
#define VIGIL_CMD_IMPORT_REPORT_H

#include "import/import.h"

#include <stdio.h>

/* A bar on a terminal; a line for each stage elsewhere. */
struct import_bar {
    FILE *to;
    const char *program; /* "vigil import" */
    bool is_terminal;
    bool is_quiet;
    int stage;        /* the last one shown; -1: none */
    int64_t begun_ns; /* of that stage */
    int64_t shown_ns; /* when it was last drawn */
    bool drawn;       /* the line must be ended or wiped */
};

void import_bar_init(struct import_bar *bar, FILE *to, const char *program, bool is_quiet);
struct import_progress import_bar_progress(struct import_bar *bar);
/* Wipes what was drawn. */
void import_bar_end(struct import_bar *bar);

/* "20 kB", as etcdutl writes sizes. */
void import_bytes_text(uint64_t bytes, char ret_text[32]);

void import_report_text(FILE *to, const struct import_options *options,
                        const struct import_summary *summary);
void import_report_json(FILE *to, const struct import_summary *summary);

#endif
