/* The columns of each kind, as data: what kubectl prints. */
#ifndef VIGIL_KUBE_TABLE_PRINTERS_H
#define VIGIL_KUBE_TABLE_PRINTERS_H

#include "base/buf.h"
#include "codec/json/tree.h"
#include "codec/json/writer.h"
#include "kube/resource/kind.h"

/* One row while it is printed. */
struct kube_cells {
    const struct json_node *object; /* NULL: it could not be read */
    struct json_writer *w;
    struct arena arena;
    int64_t now_s;
    void *summary; /* what a kind's printers have found out together; in the arena */
};

struct kube_column {
    const char *name;
    const char *type;        /* NULL: string */
    const char *description; /* NULL: none */
    bool is_name;
    bool wide; /* only with -o wide */
    /* Writes exactly one value. */
    void (*print)(struct kube_cells *cells, const struct kube_column *column);
    const char *path; /* for print, as it likes */
    const char *fallback;
};

struct kube_printer {
    const char *group, *plural;
    const struct kube_column *columns;
    size_t count;
};

/* Never NULL: the last resort is a name and an age. */
const struct kube_printer *kube_printer_of(const struct kube_kind *kind);
/* Those of kinds that are neither workloads nor what workloads are given. */
const struct kube_printer *kube_printers_other(size_t *ret_count);

/* -- Printers that several have in common; each looks at column->path -- */

/* A string as it is, or the fallback. */
void kube_print_text(struct kube_cells *cells, const struct kube_column *column);
/* A whole number; one that is not there is 0, or the fallback. */
void kube_print_int(struct kube_cells *cells, const struct kube_column *column);
/* How long ago that moment was, as "5d3h". */
void kube_print_age(struct kube_cells *cells, const struct kube_column *column);
/* How many members or items there are. */
void kube_print_count(struct kube_cells *cells, const struct kube_column *column);

/* `member` of each item of the array at the path, with commas between; or the fallback. */
void kube_print_names(struct kube_cells *cells, const struct kube_column *column);
void kube_print_images(struct kube_cells *cells, const struct kube_column *column);
/* "a=b,c=d" of an object at the path. */
void kube_print_labels(struct kube_cells *cells, const struct kube_column *column);
/* A bool, false when it is not there. */
void kube_print_bool(struct kube_cells *cells, const struct kube_column *column);

/* -- Those of one kind -- */

void kube_print_pod_ready(struct kube_cells *cells, const struct kube_column *column);
void kube_print_pod_status(struct kube_cells *cells, const struct kube_column *column);
void kube_print_pod_restarts(struct kube_cells *cells, const struct kube_column *column);

/* -- For printers -- */

/* A string without its escapes; empty when there is none. */
struct slice kube_cell_text(struct kube_cells *cells, const struct json_node *node,
                            const char *path);
/* A whole number; 0 when there is none. */
int64_t kube_cell_int(const struct json_node *node, const char *path);
/*
 * Of the items of an array, by the text of their `name`: whether `member` is `text` in the first
 * that is called so. Looking one up takes the same time in an array of any size. NULL: no memory,
 * which the arena knows.
 */
const struct json_node *kube_cell_map(struct kube_cells *cells, const char *path, const char *name,
                                      const char *member, const char *text);
bool kube_cell_map_has(const struct json_node *map, struct slice key);
/* status.conditions has one of that type with status True. */
bool kube_cell_condition(struct kube_cells *cells, const char *type);
/* Joins parts; the text is written by kube_joined_write. */
struct kube_joined {
    struct buf text;
    enum status status;
    const char *separator; /* NULL: a comma */
    unsigned shown_max;    /* of more only the number is told; 0: all are shown */
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
