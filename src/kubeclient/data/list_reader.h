/*
 * Reads the body of a list while it arrives, one item at a time:
 *
 *     {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[{…},{…}]}
 *
 * The body arrives in pieces that may be cut anywhere:
 *
 *     list_reader_feed(&reader, bytes);
 *     while ((status = list_reader_next(&reader, &item, &error)) == ST_OK)
 *         …
 *     … and after the last byte:
 *     status = list_reader_end(&reader, &error);
 *
 * No more of the body is kept than one item, however long the list is. One owner, one thread.
 *
 * JSON: members have any order, and of several with the same key the first one counts, as in
 * vigil/kube/json.h. An item is returned only if it is valid JSON and an object; it is not copied
 * if it is complete in its piece, and its bytes are then examined once. Those of the others are
 * examined up to three times.
 *
 * Protobuf: an envelope (protobuf.h) of ListMeta = 1, items = 2. An item is returned in an envelope
 * of its own, with the kind that follows from the list's. It is copied, and not examined.
 */
#ifndef VIGIL_KUBECLIENT_DATA_LIST_READER_H
#define VIGIL_KUBECLIENT_DATA_LIST_READER_H

#include "base/error.h"
#include "kubeclient/data/framer.h"

enum {
    LIST_ITEM_BYTES_MAX = FRAMER_BYTES_MAX, /* also of every other member of a list */
    /* Limit on the length of a text in struct list_info, as it is written. */
    LIST_TEXT_BYTES_MAX = 64 << 10,
};

/* What a list says about itself. The texts belong to the reader; those that the list does not have
 * are empty. */
struct list_info {
    struct slice kind, api_version; /* "PodList", "v1" */
    struct slice item_kind; /* "Pod": items have no kind of their own; empty if kind is another */
    struct slice version;   /* metadata.resourceVersion */
    struct slice continue_token;
    int64_t remaining; /* items that follow on other pages; -1: unknown */
    bool is_protobuf;
};

enum list_text { LIST_KIND, LIST_API_VERSION, LIST_VERSION, LIST_CONTINUE, LIST_TEXTS };

struct list_reader {
    struct framer framer; /* has the rest of what was fed */
    uint8_t state;        /* enum list_state */
    /* JSON: */
    uint8_t member; /* enum list_member: the member whose value follows */
    /* Protobuf: */
    uint8_t head[20];    /* "k8s\0", or the beginning of a field: its tag, and a number */
    uint8_t head_length; /* how much of it was read */
    uint32_t field;      /* the field whose content follows */
    bool in_list;        /* it is a field of the list, and not of the envelope */
    uint64_t list_left;  /* bytes of the list that follow */
    struct buf envelope; /* bytes of the envelope before an item */
    /* Both: */
    uint8_t seen;        /* a bit for each list_member that was begun */
    enum status failure; /* why the reader has failed */
    uint64_t fed_bytes, item_count;
    int64_t remaining;
    struct buf texts[LIST_TEXTS];
};

void list_reader_init(struct list_reader *reader, enum framer_format format);
void list_reader_fini(struct list_reader *reader);

/* The bytes are borrowed until list_reader_next has returned something other than ST_OK. */
void list_reader_feed(struct list_reader *reader, struct slice bytes);

/*
 * Returns the next item, valid until the next call.
 *
 * ST_AGAIN       the piece is used up
 * ST_LIMIT       an item or another member is longer than LIST_ITEM_BYTES_MAX, or a text is longer
 *                than LIST_TEXT_BYTES_MAX
 * ST_MALFORMED   this is not a list
 * ST_NOMEM
 *
 * All but the first have a text for people, and are returned again by every further call.
 */
MUST_CHECK
enum status list_reader_next(struct list_reader *reader, struct slice *ret_item,
                             struct error *error);

/* After the last byte. ST_MALFORMED: the body ended early, or is another object. */
MUST_CHECK
enum status list_reader_end(struct list_reader *reader, struct error *error);

/* What was read so far. Servers send kind, apiVersion and metadata before the items, but only after
 * list_reader_end is it certain that everything is known. */
struct list_info list_reader_info(const struct list_reader *reader);

/* Asserts every invariant; for tests. */
void list_reader_check(const struct list_reader *reader);

#endif
