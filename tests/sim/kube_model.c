#include "kube_model.h"

#include <string.h>

enum { ANSWERS_MAX = 4096 };

static struct {
    struct kube_answer all[ANSWERS_MAX];
    bool checked[ANSWERS_MAX];
    size_t count, first_unchecked;
} model;

static const char *const kinds[] = {"create", "update", "patch", "get", "delete", "informer"};

#define ANSWER_FORMAT "Kubernetes %s of %s"
#define ANSWER_ARGS(answer) kinds[(answer)->kind], (answer)->key

void kube_model_begin(void)
{
    memset(model.checked, 0, sizeof(model.checked));
    model.count = model.first_unchecked = 0;
}

void kube_model_add(const struct kube_answer *answer)
{
    if (model.count < ANSWERS_MAX)
        model.all[model.count++] = *answer;
}

static bool writes(const struct kube_answer *answer)
{
    return answer->kind <= KUBE_PATCH;
}

static int64_t revision_of(const struct version *version)
{
    return version ? version->revision : 0;
}

/* Every write has new content, so that it is a new revision. */
static void check_write(const struct kube_answer *answer)
{
    int64_t before = revision_of(history_get(answer->key, answer->revision - 1));
    if (answer->revision <= answer->floor)
        violation(ANSWER_FORMAT " has revision %lld, but %lld was seen before it began",
                  ANSWER_ARGS(answer), (long long)answer->revision, (long long)answer->floor);
    if (answer->kind == KUBE_CREATE && before)
        violation(ANSWER_FORMAT " at %lld succeeded, but it exists since %lld", ANSWER_ARGS(answer),
                  (long long)answer->revision, (long long)before);
    if (answer->condition && before != answer->condition)
        violation(ANSWER_FORMAT " at %lld succeeded for resourceVersion %lld, but it had %lld",
                  ANSWER_ARGS(answer), (long long)answer->revision, (long long)answer->condition,
                  (long long)before);
}

static void check(const struct kube_answer *answer)
{
    if (!answer->revision)
        return;
    if (revision_of(history_get(answer->key, answer->revision)) != answer->revision)
        violation(ANSWER_FORMAT " has shown revision %lld, which is not in the history",
                  ANSWER_ARGS(answer), (long long)answer->revision);
    if (writes(answer))
        check_write(answer);
    if (answer->kind == KUBE_GET && answer->revision < answer->floor &&
        revision_of(history_get(answer->key, answer->floor)) != answer->revision)
        violation(ANSWER_FORMAT " has shown revision %lld, but revision %lld was seen before",
                  ANSWER_ARGS(answer), (long long)answer->revision, (long long)answer->floor);
}

static bool is_known(const struct kube_answer *answer)
{
    return answer->revision <= history_revision() && answer->floor <= history_revision();
}

void kube_model_check_known(void)
{
    for (size_t i = model.first_unchecked; i < model.count; i++) {
        if (model.checked[i] || !is_known(&model.all[i]))
            continue;
        check(&model.all[i]);
        model.checked[i] = true;
    }
    while (model.first_unchecked < model.count && model.checked[model.first_unchecked])
        model.first_unchecked++;
}

/* -- In the end -- */

/* Whether the object was, at some time after the request began, something else than this revision;
 * 0: whether it existed. */
static bool was_other_than(const struct kube_answer *answer, int64_t revision)
{
    for (int64_t at = answer->floor; at <= history_revision(); at++)
        if (revision_of(history_get(answer->key, at)) != revision)
            return true;
    return false;
}

static bool was_deleted(const struct kube_answer *answer)
{
    for (size_t i = 0; i < history_count(); i++) {
        const struct version *change = history_at(i);
        if (change->number || change->revision <= answer->floor ||
            strcmp(change->key, answer->key) != 0)
            continue;
        if (!answer->condition ||
            revision_of(history_get(change->key, change->revision - 1)) == answer->condition)
            return true;
    }
    return false;
}

void kube_model_finish(void)
{
    enum { CONFLICT = 409 };
    for (size_t i = 0; i < model.count; i++) {
        const struct kube_answer *answer = &model.all[i];
        int64_t wanted = answer->kind == KUBE_CREATE ? 0 : answer->condition;
        if (answer->code == CONFLICT && (wanted || answer->kind == KUBE_CREATE) &&
            !was_other_than(answer, wanted))
            violation(ANSWER_FORMAT " was refused as a conflict, but no client had changed it",
                      ANSWER_ARGS(answer));
        if (answer->kind == KUBE_DELETE && !answer->code && !was_deleted(answer))
            violation(ANSWER_FORMAT " succeeded, but it was not deleted", ANSWER_ARGS(answer));
    }
}
