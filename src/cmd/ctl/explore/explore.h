/*
 * Commands that look into a store and that etcdctl does not have: their flags, and the functions
 * that run them. The table that gives them their names and texts is in explore.c.
 *
 * They need only the calls that every etcd has, with the rights of the caller, and read in pages
 * (pager.h), so that memory does not depend on the number of keys.
 */
#ifndef VIGIL_CMD_CTL_EXPLORE_EXPLORE_H
#define VIGIL_CMD_CTL_EXPLORE_EXPLORE_H

#include "cmd/ctl/session.h"

/* -- Flags -- */

struct tree_flags {
    int64_t depth, limit, revision;
    const char *separator;
    int sort; /* enum key_tree_order */
    bool keys_only;
};

struct history_flags {
    bool no_values;
    int64_t lines;
};

struct diff_flags {
    int64_t from, to, lines;
    bool brief;
};

struct grep_flags {
    bool keys_only, values_only, ignore_case, list, count, invert;
    int64_t revision;
};

struct restore_flags {
    int64_t revision;
    bool dry_run;
    int lease; /* enum restore_lease */
};

enum restore_lease { RESTORE_LEASE_KEEP, RESTORE_LEASE_NONE, RESTORE_LEASE_ORIGINAL };
#define RESTORE_LEASE_CHOICES "keep|none|original"

/* -- Commands -- */

int explore_tree(struct ctl *ctl);
int explore_history(struct ctl *ctl);
int explore_diff(struct ctl *ctl);
int explore_grep(struct ctl *ctl);
int explore_restore_key(struct ctl *ctl);
int explore_profile_list(struct ctl *ctl);
int explore_profile_show(struct ctl *ctl);

/* Exit codes of grep and diff: 0 and 1 are answers, so that every failure is something else. */
enum { EXPLORE_FOUND = 0, EXPLORE_NOT_FOUND = 1, EXPLORE_FAILED = 2 };
static inline int explore_failure(int exit)
{
    return exit == CTL_ERROR ? EXPLORE_FAILED : exit;
}

#endif
