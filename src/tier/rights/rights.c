#include "tier/rights/rights_private.h"

#include "base/metric/counter.h"
#include "base/metric/page.h"
#include "base/xalloc.h"
#include "kube/policy/access/rbac/user.h"
#include "net/sha256.h"

#include <vigil/client.h>

#define LOG_NS (60 * NS_PER_S) /* the same is not logged more often */

/* -- Counters -- */

enum {
    COUNT_VERDICTS, /* by kind and verdict */
    COUNT_HITS = COUNT_VERDICTS + TIER_KINDS * 3,
    COUNT_SECONDS = COUNT_HITS + TIER_KINDS,
    COUNT_ASKED = COUNT_SECONDS + METRIC_SLOTS, /* these are as they are now */
    COUNT_WAITING,
    COUNT_STANDING,
    COUNT_WATCHES,
    COUNT_THROTTLED,
    COUNT_REFUSED,
    COUNTS,
};

struct metric_set *tier_rights_metrics_new(void)
{
    struct metric_set *set;
    if (metric_set_new(COUNTS, &set) != ST_OK)
        xalloc_check(NULL, COUNTS);
    return set;
}

void tier_count_hit(struct tier_rights *rights, int kind)
{
    metric_add(rights->metrics, COUNT_HITS + (unsigned)kind, 1);
}

void tier_count_verdict(struct tier_rights *rights, int kind, enum tier_verdict verdict)
{
    metric_add(rights->metrics, COUNT_VERDICTS + (unsigned)kind * 3 + verdict, 1);
}

static void on_review_end(struct tier_line *line, unsigned code, int64_t elapsed_ns)
{
    struct tier_rights *rights = CONTAINER_OF(line, struct tier_rights, line);
    metric_add(rights->metrics, COUNT_THROTTLED, code == 429);
    metric_add(rights->metrics, COUNT_REFUSED, code == 401 || code == 403);
    metric_observe(rights->metrics, COUNT_SECONDS, &metric_disk_seconds, elapsed_ns);
}

static void set_gauge(struct tier_rights *rights, unsigned slot, size_t value)
{
    counter_set(&rights->metrics->values[slot], value);
}

void tier_count_standing(struct tier_rights *rights)
{
    set_gauge(rights, COUNT_STANDING, rights->standing.count);
    set_gauge(rights, COUNT_WATCHES, rights->watches);
}

static void on_line_change(struct tier_line *line)
{
    struct tier_rights *rights = CONTAINER_OF(line, struct tier_rights, line);
    set_gauge(rights, COUNT_ASKED, line->asked_count);
    set_gauge(rights, COUNT_WAITING, line->queued_count);
}

void tier_rights_metrics_write(const struct metric_set *set, struct metric_page *page)
{
    static const char reviews[] = "vigil_tier_reviews_total";
    static const char hits[] = "vigil_tier_review_cache_hits_total";
    static const char seconds[] = "vigil_tier_review_duration_seconds";
    static const char *const labels[] = {
        "kind=\"token\",result=\"allowed\"", "kind=\"token\",result=\"denied\"",
        "kind=\"token\",result=\"failed\"",  "kind=\"access\",result=\"allowed\"",
        "kind=\"access\",result=\"denied\"", "kind=\"access\",result=\"failed\"",
    };
    uint64_t slots[METRIC_SLOTS];
    metric_page_head(page, reviews, METRIC_COUNTER,
                     "Questions to the kube-apiserver about tokens (TokenReview) and accesses "
                     "(SubjectAccessReview), by its answer; failed: there was none.");
    for (unsigned i = 0; i < COUNT_OF(labels); i++)
        metric_page_row(page, reviews, labels[i], metric_sum(set, COUNT_VERDICTS + i));
    metric_page_counter(page, "vigil_tier_reviews_refused_total",
                        "Reviews that the kube-apiserver has refused with 401 or 403: the tier's "
                        "account may not make them.",
                        metric_sum(set, COUNT_REFUSED));
    metric_page_counter(page, "vigil_tier_reviews_throttled_total",
                        "Reviews that the kube-apiserver has refused with 429.",
                        metric_sum(set, COUNT_THROTTLED));
    metric_page_head(page, hits, METRIC_COUNTER, "Questions that an earlier answer has decided.");
    metric_page_row(page, hits, "kind=\"token\"", metric_sum(set, COUNT_HITS));
    metric_page_row(page, hits, "kind=\"access\"", metric_sum(set, COUNT_HITS + 1));
    metric_page_head(page, seconds, METRIC_HISTOGRAM, "Seconds from a review to its answer.");
    metric_sum_histogram(set, COUNT_SECONDS, slots);
    metric_page_row_histogram(page, seconds, "", &metric_disk_seconds, slots);
    metric_page_gauge(page, "vigil_tier_reviews_in_flight", "Reviews that are under way.",
                      metric_sum(set, COUNT_ASKED));
    metric_page_gauge(page, "vigil_tier_reviews_waiting", "Questions that wait for a review.",
                      metric_sum(set, COUNT_WAITING));
    metric_page_gauge(page, "vigil_tier_standing_rights",
                      "Rights that running watches need, and that are reviewed again and again.",
                      metric_sum(set, COUNT_STANDING));
    metric_page_gauge(page, "vigil_tier_standing_watches",
                      "Running watches of clients that need such a right.",
                      metric_sum(set, COUNT_WATCHES));
}

void tier_rights_write_metrics(const struct tier_rights *rights, struct metric_page *page)
{
    tier_rights_metrics_write(rights->metric_set, page);
}

/* -- Failures -- */

/* What an administrator has to do about an answer; NULL: nothing. */
static const char *remedy_of(int kind, unsigned code)
{
    if (code == 401)
        return "the kube-apiserver does not accept the credentials of the watch tier";
    if (code == 403 && kind == TIER_OF_TOKENS)
        return "the watch tier may not create TokenReviews: bind the ClusterRole "
               "system:auth-delegator to its account";
    if (code == 403)
        return "the watch tier may not create SubjectAccessReviews: bind the ClusterRole "
               "system:auth-delegator to its account";
    if (code == 404)
        return "the kube-apiserver does not serve TokenReviews and SubjectAccessReviews";
    return NULL;
}

static void log_failure(struct tier_rights *rights, int kind, const char *text, struct slice detail)
{
    int64_t now_ns = loop_now_ns(rights->loop);
    if (rights->logged_ns[kind] && now_ns < rights->logged_ns[kind] + LOG_NS)
        return;
    rights->logged_ns[kind] = now_ns;
    detail.len = size_min(detail.len, 400);
    tier_link_log(rights->options.link, VIGIL_LOG_WARN, "%s%s%.*s", text, detail.len ? ": " : "",
                  SLICE_ARGS(detail));
}

static const char *kind_name(int kind)
{
    return kind == TIER_OF_TOKENS ? "TokenReview" : "SubjectAccessReview";
}

void tier_not_answered(struct kube_status *status, int kind)
{
    kube_fail(status, KUBE_SERVICE_UNAVAILABLE,
              "the kube-apiserver has not answered a %s: please try again", kind_name(kind));
    status->retry_after_s = 1;
}

void tier_unanswered(struct tier_rights *rights, int kind, const struct tier_ask_answer *answer,
                     const char *garbage, struct kube_status *status)
{
    const char *remedy = remedy_of(kind, answer->code);
    bool is_answer = answer->code >= 200 && answer->code < 300;
    if (remedy || is_answer) {
        const char *text = remedy ? remedy : garbage;
        log_failure(rights, kind, text, answer->body);
        kube_fail(status, KUBE_INTERNAL_ERROR, "Internal error occurred: %s", text);
    } else if (answer->code && answer->code < 500) {
        log_failure(rights, kind, "the kube-apiserver refuses a review", answer->body);
        kube_fail(status, KUBE_INTERNAL_ERROR,
                  "Internal error occurred: the kube-apiserver refuses a %s (%u)", kind_name(kind),
                  answer->code);
    } else if (answer->code) {
        log_failure(rights, kind, "the kube-apiserver cannot decide a review", answer->body);
        kube_fail(status, KUBE_SERVICE_UNAVAILABLE,
                  "the kube-apiserver cannot decide a %s at present (%u)", kind_name(kind),
                  answer->code);
        status->retry_after_s = 1;
    } else {
        log_failure(rights, kind, "a review was not answered", slice_from_text(answer->reason));
        tier_not_answered(status, kind);
    }
}

void tier_not_asked(struct kube_status *status, enum status why)
{
    if (why == ST_NOMEM)
        (void)kube_fail_engine(status, why);
    else
        (void)kube_fail_later(status, SLICE_LITERAL("too many questions about rights wait for the "
                                                    "kube-apiserver, please try again"));
}

/* -- What is kept -- */

enum status tier_digest(struct slice a, struct slice b, uint8_t ret_id[TIER_ID_BYTES])
{
    AUTO(sha256_freep) struct sha256 *sum = sha256_new();
    if (!sum)
        return ST_NOMEM;
    sha256_add(sum, a);
    sha256_add(sum, slice_of("", 1));
    sha256_add(sum, b);
    return sha256_finish(sum, ret_id);
}

bool tier_is_fresh(const struct tier_rights *rights, int64_t asked_ns, int64_t since_ns)
{
    return clock_add(asked_ns, rights->options.ttl_ns) >= since_ns;
}

static struct tier_token *oldest_token(const struct tier_rights *rights)
{
    return list_empty(&rights->kept_tokens)
               ? NULL
               : LIST_ENTRY(rights->kept_tokens.next, struct tier_token, in_kept);
}

static struct tier_right *oldest_right(const struct tier_rights *rights)
{
    return list_empty(&rights->kept_rights)
               ? NULL
               : LIST_ENTRY(rights->kept_rights.next, struct tier_right, in_kept);
}

static void expire_later(struct tier_rights *rights)
{
    int64_t ttl_ns = rights->options.ttl_ns > NS_PER_S ? rights->options.ttl_ns : NS_PER_S;
    bool keeps = oldest_token(rights) || oldest_right(rights);
    if (keeps && !rights->expiry.set)
        loop_timer_set(rights->loop, &rights->expiry, clock_add(loop_now_ns(rights->loop), ttl_ns));
}

/* A turn is not long, however much has expired. */
enum { FORGOTTEN_PER_TURN = 1000 };

static void on_expiry(struct timer *timer)
{
    struct tier_rights *rights = CONTAINER_OF(timer, struct tier_rights, expiry);
    int64_t now_ns = loop_now_ns(rights->loop);
    size_t left = FORGOTTEN_PER_TURN;
    struct tier_token *token;
    struct tier_right *right;
    while (left && (token = oldest_token(rights)) &&
           !tier_is_fresh(rights, token->asked_ns, now_ns)) {
        tier_token_forget(token);
        left--;
    }
    while (left && (right = oldest_right(rights)) &&
           !tier_is_fresh(rights, right->asked_ns, now_ns)) {
        tier_right_forget(right);
        left--;
    }
    if (left)
        expire_later(rights);
    else
        loop_timer_set(rights->loop, &rights->expiry, now_ns + NS_PER_MS);
}

void tier_keep(struct tier_rights *rights, size_t more, size_t less)
{
    struct tier_token *token;
    struct tier_right *right;
    assert(rights->kept_bytes + more >= less);
    rights->kept_bytes += more - less;
    while (more && rights->kept_bytes > TIER_KEPT_BYTES_MAX) {
        if ((right = oldest_right(rights)))
            tier_right_forget(right);
        else if ((token = oldest_token(rights)))
            tier_token_forget(token);
        else
            break;
    }
    expire_later(rights);
}

/* -- Answers for many -- */

void tier_tell_later(struct tier_rights *rights, struct tier_news *news)
{
    list_remove(&news->in_rights);
    list_push_back(&rights->news, &news->in_rights);
    loop_defer(rights->loop, &rights->tell);
}

/* They take turns. */
static void on_tell(struct deferred *deferred)
{
    struct tier_rights *rights = CONTAINER_OF(deferred, struct tier_rights, tell);
    struct list *link = list_pop_front(&rights->news);
    if (!link)
        return;
    struct tier_news *news = LIST_ENTRY(link, struct tier_news, in_rights);
    if (news->of_token)
        tier_token_tell(CONTAINER_OF(news, struct tier_token, news));
    else
        tier_right_tell(CONTAINER_OF(news, struct tier_right, news));
    if (!list_empty(&rights->news))
        loop_defer(rights->loop, &rights->tell);
}

/* -- Life -- */

static struct tier_user *make_anonymous(void)
{
    struct slice group = KUBE_GROUP_UNAUTHENTICATED;
    struct kube_user_info info = {.name = KUBE_USER_ANONYMOUS, .groups = {&group, 1}};
    struct tier_user *user = tier_user_new(&info, SLICE_EMPTY);
    xalloc_check(user, sizeof(*user));
    user->anonymous = true;
    return user;
}

struct tier_rights *tier_rights_new(const struct tier_rights_options *options)
{
    struct tier_rights *rights = xcalloc(1, sizeof(*rights));
    rights->options = *options;
    rights->loop = options->loop;
    if (!rights->options.again_ns)
        rights->options.again_ns = 60 * NS_PER_S;
    if (!options->metrics)
        rights->own_metrics = tier_rights_metrics_new();
    struct metric_set *set = options->metrics ? options->metrics : rights->own_metrics;
    rights->metric_set = set;
    if (metric_set_join(set, &rights->metrics) != ST_OK)
        xalloc_check(NULL, COUNTS);
    random_init(&rights->random, options->seed);
    tier_line_init(&rights->line, options->loop, options->link, options->rate,
                   random_u64(&rights->random));
    tier_readiness_init(&rights->readiness, options->loop, options->link, options->rate);
    rights->line.ended = on_review_end;
    rights->line.changed = on_line_change;
    rights->anonymous = make_anonymous();
    hash_map_init(&rights->tokens, tier_token_key, random_u64(&rights->random));
    hash_map_init(&rights->rights, tier_right_key, random_u64(&rights->random));
    list_init(&rights->kept_tokens);
    list_init(&rights->known);
    list_init(&rights->refused);
    list_init(&rights->kept_rights);
    rights->expiry.fn = on_expiry;
    list_init(&rights->news);
    rights->tell.fn = on_tell;
    tier_standing_init(rights);
    return rights;
}

void tier_rights_free(struct tier_rights *rights)
{
    struct tier_token *token;
    struct tier_right *right;
    if (!rights)
        return;
    MAP_FOREACH (right, &rights->rights)
        tier_right_destroy(right);
    MAP_FOREACH (token, &rights->tokens)
        tier_token_destroy(token);
    assert(!rights->kept_bytes);
    tier_standing_fini(rights);
    assert(list_empty(&rights->news));
    loop_defer_cancel(&rights->tell);
    loop_timer_cancel(rights->loop, &rights->expiry);
    on_line_change(&rights->line);
    tier_count_standing(rights);
    tier_line_fini(&rights->line);
    tier_readiness_fini(&rights->readiness);
    hash_map_fini(&rights->tokens);
    hash_map_fini(&rights->rights);
    tier_user_unref(rights->anonymous);
    metric_set_free(rights->own_metrics);
    free(rights);
}

/* -- Tests -- */

static void check_tokens(const struct tier_rights *rights, size_t *bytes)
{
    const struct tier_token *token;
    hash_map_check(&rights->tokens);
    assert(rights->tokens.count <= TIER_USERS_MAX);
    assert(list_length(&rights->refused) == rights->refused_count);
    assert(rights->refused_count <= TIER_REFUSED_MAX);
    MAP_FOREACH (token, &rights->tokens) {
        bool has_news = !list_empty(&token->news.waiters);
        bool needed = !list_empty(&token->waiters) || token->ask.state != TIER_ASK_IDLE ||
                      tier_duty_exists(&token->duty) || has_news;
        assert(!token->busy && has_news == !list_empty(&token->news.in_rights));
        assert(needed == list_empty(&token->in_used));
        assert(needed == (token->text.len != 0));
        assert(token->answered == !list_empty(&token->in_kept));
        assert(token->answered || !token->user);
        assert(needed || token->answered || token->known);
        assert(token->duty.again.set == !list_empty(&token->duty.standings));
        assert(list_empty(&token->waiters) || token->ask.state != TIER_ASK_IDLE);
        *bytes += token->user ? token->user->bytes : 0;
    }
}

static void check_rights(const struct tier_rights *rights, size_t *bytes)
{
    const struct tier_right *right;
    hash_map_check(&rights->rights);
    assert(rights->rights.count <= TIER_ANSWERS_MAX);
    MAP_FOREACH (right, &rights->rights) {
        bool has_news = !list_empty(&right->news.waiters);
        bool needed = !list_empty(&right->waiters) || right->ask.state != TIER_ASK_IDLE ||
                      tier_duty_exists(&right->duty) || has_news;
        assert(!right->busy && has_news == !list_empty(&right->news.in_rights));
        assert(needed == list_empty(&right->in_kept));
        assert(needed == (right->wish != NULL) && needed == (right->user != NULL));
        assert(needed || right->answered);
        assert(right->duty.again.set == !list_empty(&right->duty.standings));
        assert(list_empty(&right->waiters) || right->ask.state != TIER_ASK_IDLE);
        *bytes += right->reason.capacity;
    }
}

void tier_rights_check(const struct tier_rights *rights)
{
    size_t bytes = 0;
    tier_line_check(&rights->line);
    check_tokens(rights, &bytes);
    check_rights(rights, &bytes);
    tier_standing_check(rights);
    assert(bytes == rights->kept_bytes && bytes <= TIER_KEPT_BYTES_MAX);
    bool keeps = !list_empty(&rights->kept_tokens) || !list_empty(&rights->kept_rights);
    assert(!keeps || rights->expiry.set);
}
