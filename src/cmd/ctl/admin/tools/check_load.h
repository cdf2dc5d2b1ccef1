/*
 * Puts of random keys by many clients, for `check`: each client has a connection and one request at
 * a time.
 *
 * Everything is done on one thread, which waits for all connections at once.
 */
#ifndef VIGIL_CMD_CTL_ADMIN_TOOLS_CHECK_LOAD_H
#define VIGIL_CMD_CTL_ADMIN_TOOLS_CHECK_LOAD_H

#include "base/buf.h"
#include "cmd/ctl/admin/admin.h"

enum { CHECK_ERRORS_MAX = 16 }; /* different texts that are counted; more are counted as one */

struct check_plan {
    size_t clients;
    const char *prefix;
    size_t key_bytes, value_bytes; /* the prefix is not counted */
    uint64_t per_second;           /* 0: as fast as the answers come */
    int64_t duration_ns;           /* 0: no limit … */
    uint64_t requests;             /* … but this many */
    /* Called now and then with what is done; may be NULL. */
    void (*tell)(void *ctx, uint64_t completed, int64_t passed_ns);
    void *ctx;
};

struct check_error {
    char text[VIGIL_ERROR_TEXT_BYTES];
    uint64_t count;
};

struct check_result {
    uint64_t completed; /* without an error */
    double per_second, slowest_s, stddev_s;
    struct check_error errors[CHECK_ERRORS_MAX];
    size_t error_count;
};

/* Runs until the plan is done or SIGINT arrives, and all answers are there. Not CTL_OK: the clients
 * cannot be made, and the reason was printed. */
int check_load_run(struct ctl *ctl, const struct check_plan *plan, struct check_result *ret_result);

#endif
