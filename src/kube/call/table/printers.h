/*
 * The columns that kubectl prints for each kind: one table per kind, one line per column.
 *
 *     printers.c         pods, services, workloads, nodes, namespaces, config, events, leases; and
 *                        the printers that several kinds share
 *     printers_other.c   access, networking, storage, quotas, autoscaling and all other groups
 *     printers_pod.c     the status of a pod
 *
 * custom_table.h has the columns of custom resources.
 */
#ifndef VIGIL_KUBE_CALL_TABLE_PRINTERS_H
#define VIGIL_KUBE_CALL_TABLE_PRINTERS_H

#include "base/buf.h"
#include "codec/json/tree.h"
#include "codec/json/writer.h"
#include "kube/types/kind.h"

/* The row that is being printed. */
struct kube_cells {
    const struct json_node *object; /* NULL: it could not be parsed */
    struct json_writer *w;
    struct arena arena;
    int64_t now_s;
    void *summary; /* a result that several printers of a kind share; in the arena */
};

struct kube_column {
    const char *name;
    const char *type;        /* NULL: string */
    const char *description; /* NULL: none */
    bool is_name;
    bool wide; /* only with -o wide */
    /* Writes exactly one value. */
    void (*print)(struct kube_cells *cells, const struct kube_column *column);
    const char *path; /* parameters of print, which decides their meaning */
    const char *fallback;
};

struct kube_printer {
    const char *group, *plural;
    const struct kube_column *columns;
    size_t count;
};

/* Never NULL: the default has a name and an age. */
const struct kube_printer *kube_printer_of(const struct kube_kind *kind);

/* -- Printers that several kinds share; each reads column->path -- */

/* Prints a string, or the fallback. */
void kube_print_text(struct kube_cells *cells, const struct kube_column *column);
/* Prints an integer; if it is missing, the fallback or 0. */
void kube_print_int(struct kube_cells *cells, const struct kube_column *column);
/* Prints the time since then, as "5d3h". */
void kube_print_age(struct kube_cells *cells, const struct kube_column *column);
/* Prints the number of members or items. */
void kube_print_count(struct kube_cells *cells, const struct kube_column *column);

/* Prints `member` of each item of the array at the path, separated by commas; or the fallback. */
void kube_print_names(struct kube_cells *cells, const struct kube_column *column);
void kube_print_images(struct kube_cells *cells, const struct kube_column *column);
/* Prints "a=b,c=d" for an object at the path. */
void kube_print_labels(struct kube_cells *cells, const struct kube_column *column);
/* Prints a bool, false if it is missing. */
void kube_print_bool(struct kube_cells *cells, const struct kube_column *column);

/* -- Printers for single kinds -- */

void kube_print_pod_ready(struct kube_cells *cells, const struct kube_column *column);
void kube_print_pod_status(struct kube_cells *cells, const struct kube_column *column);
void kube_print_pod_restarts(struct kube_cells *cells, const struct kube_column *column);

/* -- For printers -- */

/* A string without escapes; empty if it is missing. */
struct slice kube_cell_text(struct kube_cells *cells, const struct json_node *node,
                            const char *path);
/* An integer; 0 if it is missing. */
int64_t kube_cell_int(const struct json_node *node, const char *path);
/*
 * Maps the items of an array by the text of their `name` to whether `member` is `text` in the first
 * item of that name. A lookup takes constant time for an array of any size. NULL: no memory, which
 * arena_ran_out reports.
 */
const struct json_node *kube_cell_map(struct kube_cells *cells, const char *path, const char *name,
                                      const char *member, const char *text);
bool kube_cell_map_has(const struct json_node *map, struct slice key);
/* Whether status.conditions has a condition of that type with status True. */
bool kube_cell_condition(struct kube_cells *cells, const char *type);
/* Joins parts; kube_joined_write writes the text. */
struct kube_joined {
    struct buf text;
    enum status status;
    const char *separator; /* NULL: a comma */
    unsigned shown_max;    /* further parts are only counted; 0: no limit */
    uint64_t count;
};
void kube_joined_add(struct kube_joined *joined, struct slice part);
void kube_joined_write(struct kube_joined *joined, struct kube_cells *cells, const char *fallback);

/* "45s", "5d3h", as kubectl writes durations. */
enum { KUBE_DURATION_BYTES = 32 };
void kube_duration_text(int64_t seconds, char text[KUBE_DURATION_BYTES]);
/* Seconds since 1970 of "2026-11-15T06:13:16Z". */
bool kube_time_parse(struct slice text, int64_t *ret_s);

#endif
