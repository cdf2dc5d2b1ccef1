/* What an import prints for people and programs: its progress and its result. */
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
/* Erases the bar. */
void import_bar_end(struct import_bar *bar);

/* "20 kB", as etcdutl writes sizes. */
void import_bytes_text(uint64_t bytes, char ret_text[32]);

/* Runs the import with a progress bar and prints its result. Returns the exit status. */
int import_and_report(const char *program, struct import_options *options, bool json);
/* Returns the exit status. The error is empty when memory ran out. */
int import_report_failure(const char *program, enum status status, const struct error *error);

#endif
