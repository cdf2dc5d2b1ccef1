#include "etcd/service/txn_overlap.h"

#include "codec/pb/rpc.pb.h"

#include <stdlib.h>

/* One list of operations: the outermost branch, or a branch of a transaction nested in it. */
struct branch {
    const struct branch *parent; /* NULL for the outermost branch */
    size_t op;                   /* its operation in parent; the same for success and failure */
    unsigned depth;
};

struct overlap_put {
    struct slice key;
    const struct branch *branch;
    size_t order; /* in which puts are visited */
};

/*
 * What the visit finds, to be replayed with the set of deletes that can conflict with a put. In a
 * list: its own deletes, then its nested transactions, then its own puts. While a failure branch is
 * visited, the deletes of its success branch are not in the set.
 */
enum event_kind { DELETES_ADDED, DELETES_REMOVED, PUTS_CHECKED };

struct overlap_event {
    enum event_kind kind;
    size_t from, to; /* deletes or puts, in the order of the visit */
};

/* The puts in a range of keys, as ranks. */
struct key_span {
    size_t from, to;
};

struct overlap {
    struct arena *arena;
    struct overlap_put *puts; /* in the order of the visit, later sorted by key */
    const struct pb_delete_range_request **deletes;
    struct overlap_event *events;
    struct branch *branches;
    size_t put_count, delete_count, event_count, branch_count;
    struct key_span *spans; /* for each delete, in the order of the visit: the puts in its range */
    size_t *rank;           /* for each put, in the order of the visit: its index by key */
    int32_t *counts;        /* Fenwick tree over ranks: how many deletes of the set cover each */
};

/* -- The visit -- */

static void count_all(struct overlap *o, const struct pb_request_op *ops, size_t count)
{
    o->branch_count++;
    for (size_t i = 0; i < count; i++) {
        o->put_count += ops[i].request_case == PB_REQUEST_OP_REQUEST_PUT;
        o->delete_count += ops[i].request_case == PB_REQUEST_OP_REQUEST_DELETE_RANGE;
        if (ops[i].request_case == PB_REQUEST_OP_REQUEST_TXN) {
            count_all(o, ops[i].request_txn->success, ops[i].request_txn->success_count);
            count_all(o, ops[i].request_txn->failure, ops[i].request_txn->failure_count);
        }
    }
}

static size_t event_add(struct overlap *o, enum event_kind kind, size_t from, size_t to)
{
    o->events[o->event_count] = (struct overlap_event){.kind = kind, .from = from, .to = to};
    return o->event_count++;
}

static const struct branch *branch_add(struct overlap *o, const struct branch *parent, size_t op)
{
    struct branch *branch = &o->branches[o->branch_count++];
    *branch = (struct branch){.parent = parent, .op = op, .depth = parent ? parent->depth + 1 : 0};
    return branch;
}

static void visit(struct overlap *o, const struct pb_request_op *ops, size_t count,
                  const struct branch *branch);

static void visit_nested(struct overlap *o, const struct pb_txn_request *txn,
                         const struct branch *parent, size_t op)
{
    size_t deletes_from = o->delete_count;
    visit(o, txn->success, txn->success_count, branch_add(o, parent, op));
    size_t deletes_to = o->delete_count;
    size_t puts_from = o->put_count;

    size_t pause = event_add(o, DELETES_REMOVED, deletes_from, deletes_to);
    visit(o, txn->failure, txn->failure_count, branch_add(o, parent, op));
    if (o->put_count > puts_from)
        event_add(o, DELETES_ADDED, deletes_from, deletes_to);
    else
        o->events[pause].to = deletes_from; /* no put was checked, so nothing need be removed */
}

static void visit(struct overlap *o, const struct pb_request_op *ops, size_t count,
                  const struct branch *branch)
{
    size_t deletes_from = o->delete_count;
    for (size_t i = 0; i < count; i++) {
        if (ops[i].request_case == PB_REQUEST_OP_REQUEST_DELETE_RANGE)
            o->deletes[o->delete_count++] = ops[i].request_delete_range;
    }
    event_add(o, DELETES_ADDED, deletes_from, o->delete_count);

    for (size_t i = 0; i < count; i++) {
        if (ops[i].request_case == PB_REQUEST_OP_REQUEST_TXN)
            visit_nested(o, ops[i].request_txn, branch, i);
    }

    size_t puts_from = o->put_count;
    for (size_t i = 0; i < count; i++) {
        if (ops[i].request_case == PB_REQUEST_OP_REQUEST_PUT) {
            o->puts[o->put_count] = (struct overlap_put){
                .key = ops[i].request_put->key, .branch = branch, .order = o->put_count};
            o->put_count++;
        }
    }
    event_add(o, PUTS_CHECKED, puts_from, o->put_count);
}

static enum status visit_all(struct overlap *o, const struct pb_request_op *ops, size_t count)
{
    o->puts = arena_calloc(o->arena, o->put_count, sizeof(*o->puts));
    o->deletes = arena_calloc(o->arena, o->delete_count, sizeof(*o->deletes));
    /* Two events per branch, and two more per pair of nested branches. */
    o->events = arena_calloc(o->arena, 3 * o->branch_count, sizeof(*o->events));
    o->branches = arena_calloc(o->arena, o->branch_count, sizeof(*o->branches));
    if (!o->puts || !o->deletes || !o->events || !o->branches)
        return ST_NOMEM;
    o->put_count = o->delete_count = o->event_count = o->branch_count = 0;
    visit(o, ops, count, branch_add(o, NULL, 0));
    return ST_OK;
}

/* -- Puts against puts -- */

static int put_compare(const void *a, const void *b)
{
    const struct overlap_put *left = a, *right = b;
    int order = slice_compare(left->key, right->key);
    return order ? order : (left->order > right->order) - (left->order < right->order);
}

/* Both may run: they are not in the success and failure branches of one transaction. */
static bool run_together(const struct branch *a, const struct branch *b)
{
    while (a->depth > b->depth)
        a = a->parent;
    while (b->depth > a->depth)
        b = b->parent;
    if (a == b)
        return true;
    while (a->parent != b->parent) {
        a = a->parent;
        b = b->parent;
    }
    return a->op != b->op;
}

/*
 * It suffices to compare neighbours among the puts of one key, in the order of the visit. If two of
 * them conflict and others are between, then the last one inside the operation of the first and the
 * next one outside of it are neighbours, and conflict as well.
 */
static bool puts_clash(struct overlap *o)
{
    qsort(o->puts, o->put_count, sizeof(*o->puts), put_compare);
    for (size_t i = 1; i < o->put_count; i++) {
        if (slice_equal(o->puts[i - 1].key, o->puts[i].key) &&
            run_together(o->puts[i - 1].branch, o->puts[i].branch))
            return true;
    }
    return false;
}

/* -- Puts against deletes -- */

/* How many puts have keys before bound, or, if `through`, up to and including bound. */
static size_t rank_of(const struct overlap *o, struct slice bound, bool through)
{
    size_t low = 0, high = o->put_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_compare(o->puts[middle].key, bound);
        if (order < 0 || (through && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void counts_add(struct overlap *o, size_t from_rank, int32_t by)
{
    for (size_t i = from_rank + 1; i <= o->put_count; i += i & -i)
        o->counts[i] += by;
}

static bool is_covered(const struct overlap *o, size_t rank)
{
    int32_t sum = 0;
    for (size_t i = rank + 1; i > 0; i -= i & -i)
        sum += o->counts[i];
    return sum > 0;
}

static struct key_span span_of(const struct overlap *o,
                               const struct pb_delete_range_request *request)
{
    struct slice end = request->range_end;
    return (struct key_span){
        .from = rank_of(o, request->key, false),
        .to = end.len ? rank_of(o, end, false) : rank_of(o, request->key, true),
    };
}

static void span_counts(struct overlap *o, struct key_span span, int32_t by)
{
    if (span.from < span.to) {
        counts_add(o, span.from, by);
        counts_add(o, span.to, -by);
    }
}

static bool event_clashes(struct overlap *o, const struct overlap_event *event)
{
    for (size_t i = event->from; i < event->to; i++) {
        if (event->kind != PUTS_CHECKED)
            span_counts(o, o->spans[i], event->kind == DELETES_ADDED ? 1 : -1);
        else if (is_covered(o, o->rank[i]))
            return true;
    }
    return false;
}

static enum status check_deletes(struct overlap *o)
{
    o->rank = arena_calloc(o->arena, o->put_count, sizeof(*o->rank));
    o->counts = arena_calloc(o->arena, o->put_count + 1, sizeof(*o->counts));
    o->spans = arena_calloc(o->arena, o->delete_count, sizeof(*o->spans));
    if (!o->rank || !o->counts || !o->spans)
        return ST_NOMEM;
    for (size_t i = 0; i < o->put_count; i++)
        o->rank[o->puts[i].order] = i;
    for (size_t i = 0; i < o->delete_count; i++)
        o->spans[i] = span_of(o, o->deletes[i]);
    for (size_t i = 0; i < o->event_count; i++) {
        if (event_clashes(o, &o->events[i]))
            return ST_DUPLICATE_KEY;
    }
    return ST_OK;
}

enum status txn_overlap_check(const struct pb_request_op *ops, size_t count, struct arena *arena)
{
    struct overlap o = {.arena = arena};
    count_all(&o, ops, count);
    if (o.put_count == 0 || o.put_count + o.delete_count < 2)
        return ST_OK;
    TRY(visit_all(&o, ops, count));
    if (puts_clash(&o))
        return ST_DUPLICATE_KEY;
    return o.delete_count ? check_deletes(&o) : ST_OK;
}
