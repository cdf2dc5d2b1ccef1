/*
 * Which conversion webhooks have failed lately: noted at the end of each of their calls, so that
 * the status of their definitions can say it (kube/jobs/definitions.h).
 *
 *     a call fails, or a status says so ─► row ─► calls succeed, and the status says so, or the
 *                                                 definition is gone ─► no row
 *
 * One set for a server; any thread. While there is no row, a call that succeeds takes no lock.
 */
#ifndef VIGIL_KUBE_CALL_CONVERTER_STATES_H
#define VIGIL_KUBE_CALL_CONVERTER_STATES_H

#include "base/slice.h"
#include "kube/custom/conversion_review.h"

struct kube_converter_states;
struct kube_definition;

enum {
    KUBE_CONVERTER_STATES_MAX = 100, /* further webhooks that fail are only counted */
    KUBE_CONVERTER_PAUSE_S = 30,     /* between two changes of the status of a definition */
    KUBE_CONVERTER_VERSION_BYTES = 64,
};

struct kube_converter_states *kube_converter_states_new(void);
void kube_converter_states_free(struct kube_converter_states *states); /* accepts NULL */

/* A call for the definition has ended. */
void kube_converter_states_note(struct kube_converter_states *states, struct slice definition,
                                const char *from, const char *to, enum conversion_failure failure);

struct kube_converter_state {
    bool fails;
    enum conversion_failure failure; /* the last one, and the versions of the call */
    char from[KUBE_CONVERTER_VERSION_BYTES], to[KUBE_CONVERTER_VERSION_BYTES];
};

/* Whether it is worth the time to ask about each definition; itself a question about all. */
bool kube_converter_states_have_news(struct kube_converter_states *states, int64_t now_ns);
/*
 * Whether the status of the definition says something else than its calls since the last question
 * have shown: any failure among them counts. The caller changes the status then; the answer is
 * false for the next KUBE_CONVERTER_PAUSE_S.
 */
MUST_CHECK
bool kube_converter_states_differ(struct kube_converter_states *states,
                                  const struct kube_definition *definition, int64_t now_ns,
                                  struct kube_converter_state *ret_state);
/* After a question about each definition: drops the rows of those that no longer exist. */
void kube_converter_states_prune(struct kube_converter_states *states);

size_t kube_converter_states_count(const struct kube_converter_states *states);

#endif
