#include "cmd/ctl/admin/tools/check_load.h"

#include "base/clock.h"
#include "base/random.h"
#include "base/xalloc.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>

enum { WAIT_MS_MAX = 100, FILES_PER_CLIENT = 8 };

struct load;

struct slot {
    struct load *load;
    vigil_client *client;
    vigil_call *call; /* NULL: it is free */
    int64_t begun_ns;
};

struct load {
    struct ctl *ctl;
    const struct check_plan *plan;
    struct check_result *result;
    struct slot *slots;
    struct slot **free; /* a stack */
    size_t free_count;
    struct pollfd *descriptors;
    char *key, *value;
    struct random random;
    uint64_t sent;
    int64_t begun_ns, next_ns; /* when the next request may be sent */
    double *latencies;
    size_t latency_room;
};

/* -- Results -- */

static void note_error(struct check_result *result, const char *text)
{
    size_t i = 0;
    while (i < result->error_count && strcmp(result->errors[i].text, text) != 0)
        i++;
    if (i == CHECK_ERRORS_MAX)
        i--;
    if (i == result->error_count)
        snprintf(result->errors[result->error_count++].text, VIGIL_ERROR_TEXT_BYTES, "%s", text);
    result->errors[i].count++;
}

static void finish_result(const struct load *load, int64_t passed_ns)
{
    struct check_result *result = load->result;
    double count = (double)result->completed, sum = 0, squares = 0;
    result->per_second = count / ((double)passed_ns / (double)NS_PER_S);
    for (size_t i = 0; i < result->completed; i++) {
        sum += load->latencies[i];
        result->slowest_s = fmax(result->slowest_s, load->latencies[i]);
    }
    for (size_t i = 0; i < result->completed; i++) {
        double off = load->latencies[i] - sum / count;
        squares += off * off;
    }
    result->stddev_s = result->completed ? sqrt(squares / count) : 0;
}

/* -- Requests -- */

static void on_done(vigil_call *call, void *user)
{
    struct slot *slot = user;
    struct load *load = slot->load;
    const vigil_error *error = vigil_call_error(call);
    int64_t now_ns = clock_mono_ns(clock_system());
    if (error->code == VIGIL_OK) {
        struct check_result *result = load->result;
        if (result->completed == load->latency_room) {
            load->latency_room = load->latency_room ? load->latency_room * 2 : 4096;
            load->latencies =
                xrealloc(load->latencies, load->latency_room * sizeof(*load->latencies));
        }
        load->latencies[result->completed++] = (double)(now_ns - slot->begun_ns) / (double)NS_PER_S;
    } else {
        note_error(load->result, admin_error_text(load->ctl, error));
    }
    vigil_call_free(call);
    slot->call = NULL;
    load->free[load->free_count++] = slot;
}

static void send_one(struct load *load, int64_t now_ns)
{
    struct slot *slot = load->free[--load->free_count];
    vigil_bytes value = vigil_bytes_of(load->value, load->plan->value_bytes);
    slot->begun_ns = now_ns;
    size_t prefix = strlen(load->plan->prefix);
    uint64_t number = random_u64(&load->random);
    memcpy(load->key + prefix, &number, sizeof(number));
    slot->call = vigil_put(slot->client, vigil_bytes_of(load->key, prefix + load->plan->key_bytes),
                           value, 0);
    vigil_call_set_timeout(slot->call, 0);
    load->sent++;
    if (vigil_call_start(slot->call, on_done, slot) == VIGIL_OK)
        return;
    note_error(load->result, "out of memory");
    vigil_call_free(slot->call);
    slot->call = NULL;
    load->free[load->free_count++] = slot;
}

static bool is_over(const struct load *load, int64_t now_ns)
{
    const struct check_plan *plan = load->plan;
    return ctl_interrupted() || (plan->requests && load->sent >= plan->requests) ||
           (plan->duration_ns && now_ns - load->begun_ns >= plan->duration_ns);
}

/* -- Waiting -- */

static int wait_ms(const struct load *load, int64_t now_ns)
{
    int64_t left_ns = load->next_ns - now_ns;
    if (!load->free_count || left_ns > WAIT_MS_MAX * NS_PER_MS)
        return WAIT_MS_MAX;
    return left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
}

/* Signals arrive only here (ctl_catch_signals). */
static void wait_for_all(struct load *load, int timeout_ms)
{
    sigset_t open;
    sigprocmask(SIG_BLOCK, NULL, &open);
    sigdelset(&open, SIGINT);
    sigdelset(&open, SIGTERM);
    struct timespec timeout = {.tv_nsec = (long)timeout_ms * NS_PER_MS};
    ppoll(load->descriptors, load->plan->clients, &timeout, &open);
    for (size_t i = 0; i < load->plan->clients; i++) {
        vigil_client *client = load->slots[i].client;
        if (load->descriptors[i].revents || vigil_client_timeout_ms(client) == 0)
            vigil_client_process(client);
    }
}

static void run(struct load *load)
{
    int64_t now_ns = clock_mono_ns(clock_system());
    load->begun_ns = load->next_ns = now_ns;
    while (!is_over(load, now_ns) || load->free_count < load->plan->clients) {
        /* A server that is too slow does not get the missed requests afterwards. */
        int64_t every_ns = load->plan->per_second ? NS_PER_S / (int64_t)load->plan->per_second : 0;
        while (load->free_count && load->next_ns <= now_ns && !is_over(load, now_ns)) {
            send_one(load, now_ns);
            load->next_ns += every_ns;
        }
        if (!load->free_count && load->next_ns < now_ns)
            load->next_ns = now_ns;
        wait_for_all(load, is_over(load, now_ns) ? WAIT_MS_MAX : wait_ms(load, now_ns));
        now_ns = clock_mono_ns(clock_system());
        if (load->plan->tell)
            load->plan->tell(load->plan->ctx, load->result->completed, now_ns - load->begun_ns);
    }
    finish_result(load, now_ns - load->begun_ns);
}

/* -- Clients -- */

static int make_client(struct load *load, size_t place)
{
    struct slot *slot = &load->slots[place];
    int code = CTL_OK;
    slot->load = load;
    slot->client = ctl_client_of(load->ctl, load->ctl->globals.endpoints, &code);
    if (!slot->client)
        return code;
    load->descriptors[place] =
        (struct pollfd){.fd = vigil_client_fd(slot->client), .events = POLLIN};
    load->free[load->free_count++] = slot;
    return CTL_OK;
}

static void load_init(struct load *load)
{
    const struct check_plan *plan = load->plan;
    size_t prefix = strlen(plan->prefix);
    load->slots = xcalloc(plan->clients, sizeof(*load->slots));
    load->free = xcalloc(plan->clients, sizeof(struct slot *));
    load->descriptors = xcalloc(plan->clients, sizeof(*load->descriptors));
    load->key = xcalloc(1, prefix + plan->key_bytes);
    load->value = xcalloc(1, plan->value_bytes);
    memcpy(load->key, plan->prefix, prefix);
    random_init(&load->random, random_seed_system());
    struct rlimit limit;
    rlim_t wanted = plan->clients * FILES_PER_CLIENT + 64;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
        return;
    limit.rlim_cur = wanted < limit.rlim_max ? wanted : limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void load_fini(struct load *load)
{
    for (size_t i = 0; i < load->plan->clients; i++) {
        vigil_call_free(load->slots[i].call); /* first: its end is not counted */
        vigil_client_free(load->slots[i].client);
    }
    free(load->slots);
    free(load->free);
    free(load->descriptors);
    free(load->key);
    free(load->value);
    free(load->latencies);
}

int check_load_run(struct ctl *ctl, const struct check_plan *plan, struct check_result *ret_result)
{
    *ret_result = (struct check_result){0};
    AUTO(load_fini) struct load load = {.ctl = ctl, .plan = plan, .result = ret_result};
    load_init(&load);
    int code = CTL_OK;
    for (size_t i = 0; i < plan->clients && code == CTL_OK; i++)
        code = make_client(&load, i);
    if (code == CTL_OK)
        run(&load);
    return code;
}
