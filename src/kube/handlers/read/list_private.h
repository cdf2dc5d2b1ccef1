/*
 * A list that is being answered, for its two files: list.c reads the range and decides how the list
 * is sent, list_parts.c makes its parts. On the thread of its API, except while a batch is on the
 * worker (kube/call/call_offload.h), which then owns the list.
 */
#ifndef VIGIL_KUBE_HANDLERS_READ_LIST_PRIVATE_H
#define VIGIL_KUBE_HANDLERS_READ_LIST_PRIVATE_H

#include "kube/call/operation.h"
#include "kube/call/shape.h"
#include "kube/handlers/read/converted_range.h"
#include "kube/handlers/read/object_writer.h"
#include "kube/handlers/read/scope.h"
#include "kube/handlers/read/search_budget.h"

struct gzip_source;

/* The next part to make: HEAD ─► ITEMS ─► END ─► DONE; from END a list whose items were gathered
 * first returns to HEAD: one in protobuf, and one whose objects a webhook converts. */
enum kube_list_phase { KUBE_LIST_HEAD, KUBE_LIST_ITEMS, KUBE_LIST_END, KUBE_LIST_DONE };

struct kube_list {
    struct http_source source;
    struct kube_call *call;
    struct kube_scope scope;
    struct kube_shaping shaping;
    struct kube_object_writer writer;
    struct kube_searcher searcher;
    struct deferred again; /* continues gathering in the next turn */
    struct kube_revision_wait fresh;
    struct pb_range_request request;
    int64_t limit;            /* 0: none */
    int64_t given;            /* items so far */
    uint64_t fetched;         /* objects that were examined */
    int64_t total;            /* keys of the range */
    bool left_out;            /* the limit has left some out of the range */
    int64_t revision;         /* revision of the list */
    struct slice rest_suffix; /* suffix of the key after the last item, once the limit is reached */
    bool more;                /* there are items after the limit */
    struct gzip_source *packer; /* owned; NULL: not compressed */
    struct buf batch;           /* fields to be converted, each after its length, a size_t */
    enum status batch_status;   /* set by the worker */
    /* A batch has come back from the worker. */
    void (*on_batch)(struct kube_list *list, enum status status);
    struct kube_converted_range converted; /* objects that a webhook converts, */
    bool converts;                         /* if there are any */
    bool unexpected;                       /* there is one although there should not be any */
    uint64_t undecodable;                  /* objects */
    struct buf text;                       /* a whole short list */
    struct buf gathered;   /* items in protobuf, which follow their total length, or as JSON */
    size_t gathered_bytes; /* share of api->gathered_bytes */
    size_t charged_bytes;  /* to the connection, for gathered */
    size_t charged_made;   /* the same for writer.made */
    size_t charged_text;   /* the same for text */
    bool gathers;
    bool whole; /* it is made before it is sent, without the worker */
    bool range_open;
    bool metadata_sent;
    enum kube_list_phase phase;
};

void kube_list_move(struct kube_list *list, enum kube_list_phase next);
/* When the range is open, of objects that a webhook converts. */
void kube_list_begin_converted(struct kube_list *list);
/* The next of them, which are added to list->gathered. If the list waits afterwards
 * (converted.waits), on_batch is called. */
MUST_CHECK
enum status kube_list_next_converted(struct kube_list *list);
/* Closes the range if it is open. */
void kube_list_close_range(struct kube_list *list);

/* Each of these makes the bytes that are sent next (list->writer), if any. If the list is away
 * afterwards (call->work.away), on_batch is called. ST_MALFORMED, ST_INVALID: a stored value is not
 * an object. */

/* The next part. */
MUST_CHECK
enum status kube_list_step(struct kube_list *list);
/* The next item or items; of a list in protobuf they are added to list->gathered. */
MUST_CHECK
enum status kube_list_next_item(struct kube_list *list);

#endif
