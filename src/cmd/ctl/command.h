/* Commands as rows: what each is called, takes and does. See cmd/ctl/ctl.h. */
#ifndef VIGIL_CMD_CTL_COMMAND_H
#define VIGIL_CMD_CTL_COMMAND_H

#include "base/macros.h"
#include "base/options/rows.h"

struct ctl;

struct ctl_command {
    const char *path;           /* "get", "lease grant" */
    const char *words;          /* "<key> [range_end]"; "" for none */
    const char *summary;        /* one line: "Gets the key or a range of keys" */
    const char *examples;       /* lines for the help; NULL only if the summary is enough */
    const struct option *flags; /* its own; may be NULL */
    size_t flag_count;
    size_t flags_bytes; /* size of the struct that they fill, which ctl->flags points to */
    const char *flags_not_3_4, *flags_only_3_4; /* names, each between spaces; NULL: none */
    unsigned words_min, words_max;
    const char *words_error; /* etcdctl's text when there are fewer or more; NULL: ours */
    bool ours;               /* not in etcdctl: unknown under that name */
    bool only_etcdctl;       /* only under that name */
    bool only_3_4, not_3_4;  /* in which etcdctl it exists */
    int (*run)(struct ctl *ctl);
};

/* A row; its flags, its words and further members may follow. */
#define COMMAND(path_, words_, summary_, run_, ...)                                           \
    {                                                                                         \
        .path = (path_), .words = (words_), .summary = (summary_), .run = (run_), __VA_ARGS__ \
    }
#define FLAGS(rows, type) \
    .flags = (rows), .flag_count = COUNT_OF(rows), .flags_bytes = sizeof(struct type)
#define WORDS(least, most, error) .words_min = (least), .words_max = (most), .words_error = (error)
#define ANY_WORDS UINT32_MAX

struct ctl_group {
    const char *title; /* heading in the help */
    const struct ctl_command *commands;
    size_t count;
};

/* The groups, in the order of the help. Each is defined by the files of its folder. */
extern const struct ctl_group ctl_kv_group;      /* kv/: get put del txn watch compaction lease */
extern const struct ctl_group ctl_lock_group;    /* kv/: lock elect */
extern const struct ctl_group ctl_cluster_group; /* admin/: member endpoint alarm defrag … */
extern const struct ctl_group ctl_auth_group;    /* admin/: auth user role */
extern const struct ctl_group ctl_explore_group; /* explore/: tree history diff grep … */

#endif
