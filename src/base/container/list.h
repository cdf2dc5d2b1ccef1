/* A doubly linked ring with links embedded in the members. A head that points at itself is empty.
 */
#ifndef VIGIL_BASE_CONTAINER_LIST_H
#define VIGIL_BASE_CONTAINER_LIST_H

#include "base/macros.h"

#include <stdbool.h>

struct list {
    struct list *prev, *next;
};

static inline void list_init(struct list *link)
{
    link->prev = link->next = link;
}

static inline bool list_empty(const struct list *head)
{
    return head->next == head;
}

/* Walks the whole list; for checks. */
static inline size_t list_length(const struct list *head)
{
    size_t length = 0;
    for (const struct list *link = head->next; link != head; link = link->next)
        length++;
    return length;
}

static inline void list_insert_before(struct list *where, struct list *link)
{
    link->prev = where->prev;
    link->next = where;
    where->prev->next = link;
    where->prev = link;
}

static inline void list_push_back(struct list *head, struct list *link)
{
    list_insert_before(head, link);
}

static inline void list_push_front(struct list *head, struct list *link)
{
    list_insert_before(head->next, link);
}

/* Leaves the link alone in its own ring, so removing twice is harmless. */
static inline void list_remove(struct list *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    list_init(link);
}

static inline struct list *list_pop_front(struct list *head)
{
    if (list_empty(head))
        return NULL;
    struct list *first = head->next;
    list_remove(first);
    return first;
}

/* Moves all members of `tail`, in their order, behind the last of `head`. */
static inline void list_append(struct list *head, struct list *tail)
{
    if (list_empty(tail))
        return;
    tail->next->prev = head->prev;
    head->prev->next = tail->next;
    tail->prev->next = head;
    head->prev = tail->prev;
    list_init(tail);
}

#define LIST_ENTRY(link, type, member) CONTAINER_OF(link, type, member)

/* The "item" around the head is not a real one, and may be at an address where none can be: only
 * its address is compared. */
#define LIST_IS_HEAD(item, head, member) \
    ((uintptr_t)(item) + offsetof(__typeof__(*item), member) == (uintptr_t)(head))
#define LIST_FOLLOWING(link, item, member) LIST_ENTRY((link)->next, __typeof__(*item), member)

#define LIST_FOREACH(item, head, member)                                               \
    for (item = LIST_FOLLOWING(head, item, member); !LIST_IS_HEAD(item, head, member); \
         item = LIST_FOLLOWING(&item->member, item, member))

/* The current item may be removed or freed. */
#define LIST_FOREACH_SAFE(item, following, head, member)                  \
    for (item = LIST_FOLLOWING(head, item, member);                       \
         !LIST_IS_HEAD(item, head, member) &&                             \
         (following = LIST_FOLLOWING(&item->member, item, member), true); \
         item = following)

#endif
