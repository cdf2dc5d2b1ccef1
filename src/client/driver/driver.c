#include "client/driver/driver.h"

#include "client/driver/scope.h"
#include "io/socket.h"

#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

/* Ten years: can be added to a clock. */
#define TIME_MS_MAX (INT64_C(10) * 365 * 24 * 3600 * 1000)

/* -- References and commands -- */

void driver_ref(struct driver *driver)
{
    atomic_fetch_add_explicit(&driver->refs, 1, memory_order_relaxed);
}

static void destroy(struct driver *driver)
{
    assert(list_empty(&driver->members));
    if (!driver->group) {
        if (driver->loop) {
            mailbox_detach(driver->mailbox);
            assert(mailbox_empty(driver->mailbox));
        }
        loop_free(driver->loop);
    }
    pthread_cond_destroy(&driver->changed);
    lock_fini(&driver->lock);
    driver->ops->destroy(driver);
}

void driver_unref(struct driver *driver)
{
    if (atomic_fetch_sub_explicit(&driver->refs, 1, memory_order_acq_rel) == 1)
        destroy(driver);
}

static void run_commands(struct mailbox_node *node)
{
    while (node) {
        struct mailbox_node *next = node->next;
        driver_command_receive(NULL, node);
        node = next;
    }
}

/* The loop has ended: commands run on the threads that post them, and only release what they belong
 * to. One thread at a time runs all of them, because two commands may be about one object. */
static void run_rest(struct driver *driver)
{
    struct mailbox_node *node;
    lock_take(&driver->lock);
    if (!driver->running_rest) {
        driver->running_rest = true;
        while ((node = mailbox_take(driver->mailbox))) {
            lock_release(&driver->lock);
            run_commands(node);
            lock_take(&driver->lock);
        }
        driver->running_rest = false;
    }
    lock_release(&driver->lock);
}

void driver_post(struct driver *driver, struct driver_command *command)
{
    if (driver_is_inherited(driver))
        return;
    driver_ref(driver); /* the command may release the object that holds the driver */
    atomic_fetch_add(&driver->signalling, 1);
    mailbox_post(driver->mailbox, &command->in_mailbox);
    atomic_fetch_sub(&driver->signalling, 1);
    if (atomic_load_explicit(&driver->loop_ended, memory_order_seq_cst))
        run_rest(driver);
    driver_unref(driver);
}

bool driver_post_start(struct driver *driver, struct driver_command *command)
{
    if (driver_is_inherited(driver))
        return true; /* as driver_post does: the program was refused before */
    atomic_fetch_add(&driver->signalling, 1);
    bool open = !atomic_load(&driver->closing);
    if (open)
        mailbox_post(driver->mailbox, &command->in_mailbox);
    atomic_fetch_sub(&driver->signalling, 1);
    return open;
}

/* -- Callbacks -- */

/* Callbacks are frequent, and dropping an object is rare, so only a thread that has to wait takes
 * the lock:
 *
 *     loop: inside = object, then reads dropped       loop: inside = NULL, then reads waiting
 *     user: dropped = true, then reads inside         user: waiting++, then reads inside
 *
 * In each pair at least one of the two threads sees what the other has written. */

static bool begin_callback(struct driver *driver, const struct driver_object *object,
                           const _Atomic bool *is_over)
{
    if (object->internal)
        return !atomic_load_explicit(&object->dropped, memory_order_relaxed);
    assert(!atomic_load_explicit(&driver->inside, memory_order_relaxed));
    atomic_store_explicit(&driver->inside_thread, pthread_self(), memory_order_relaxed);
    atomic_store(&driver->inside, object);
    if (!atomic_load(&object->dropped) && !atomic_load(is_over))
        return true;
    driver_callback_end(driver);
    return false;
}

bool driver_callback_begin(struct driver *driver, const struct driver_object *object)
{
    return begin_callback(driver, object, &driver->quiet);
}

bool driver_completion_begin(struct driver *driver, const struct driver_object *object)
{
    return begin_callback(driver, object, &driver->silent);
}

void driver_callback_end(struct driver *driver)
{
    atomic_store(&driver->inside, NULL);
    if (!atomic_load(&driver->waiting))
        return;
    LOCK_SCOPE(&driver->lock);
    pthread_cond_broadcast(&driver->changed);
}

bool driver_is_inside(struct driver *driver)
{
    return atomic_load(&driver->inside) &&
           pthread_equal(atomic_load_explicit(&driver->inside_thread, memory_order_relaxed),
                         pthread_self());
}

bool driver_must_not_wait(struct driver *driver)
{
    return driver_is_inside(driver) || (driver->owner && driver_scope_has(driver->owner));
}

static _Thread_local struct driver_thread *this_thread;

void driver_thread_enter(struct driver_thread *thread)
{
    this_thread = thread;
}

void driver_thread_waits(bool waits)
{
    if (this_thread)
        atomic_store(&this_thread->waits, waits);
}

/* Waits for a callback of this object, or of any if it is NULL; not for one that we are inside. */
static void wait_for_callback(struct driver *driver, const struct driver_object *object)
{
    LOCK_SCOPE(&driver->lock);
    atomic_fetch_add(&driver->waiting, 1);
    driver_thread_waits(true);
    for (const struct driver_object *inside;
         (inside = atomic_load(&driver->inside)) && (!object || inside == object);)
        lock_wait(&driver->lock, &driver->changed);
    driver_thread_waits(false);
    atomic_fetch_sub(&driver->waiting, 1);
}

void driver_wait(struct driver *driver)
{
    atomic_fetch_add(&driver->waiting, 1);
    driver_thread_waits(true);
    lock_wait(&driver->lock, &driver->changed);
    driver_thread_waits(false);
    atomic_fetch_sub(&driver->waiting, 1);
}

void driver_changed(struct driver *driver)
{
    assert(lock_held(&driver->lock));
    if (atomic_load(&driver->waiting))
        pthread_cond_broadcast(&driver->changed);
}

void driver_drop(struct driver *driver, struct driver_object *object)
{
    atomic_store(&object->dropped, true);
    if (atomic_load(&driver->inside) == object && !driver_is_inside(driver) &&
        !driver_is_inherited(driver))
        wait_for_callback(driver, object);
}

/* -- The end -- */

static void end_all(struct driver *driver)
{
    driver->ended = true;
    while (!list_empty(&driver->members)) {
        struct driver_member *member =
            LIST_ENTRY(driver->members.next, struct driver_member, in_driver);
        list_remove(&member->in_driver);
        member->end(member);
    }
    struct driver_part *part;
    LIST_FOREACH (part, &driver->parts, in_driver)
        part->end(part);
    struct driver_observer *observer;
    LOCK_SCOPE(&driver->lock);
    driver->all_ended = true;
    LIST_FOREACH (observer, &driver->observers, in_driver)
        observer->ended(observer);
}

static void run_shutdown(struct driver_command *command)
{
    struct driver *driver = CONTAINER_OF(command, struct driver, shutdown);
    end_all(driver);
    driver_unref(driver);
}

/* Threads that were about to signal the loop when it was closed do so now, and then never again.
 * They need no lock for it and are done after a few instructions. */
static void wait_for_signals(struct driver *driver)
{
    while (atomic_load(&driver->signalling))
        sched_yield();
}

/* On the thread that drives the loop, which makes no turn any more. */
static void end_loop(struct driver *driver)
{
    /* Ends everything, and calls that were to be freed by their callbacks do not remain. */
    struct mailbox_node *node;
    atomic_store(&driver->closing, true);
    wait_for_signals(driver); /* those of starts that were accepted before */
    end_all(driver);
    while ((node = mailbox_take(driver->mailbox)))
        run_commands(node);
    atomic_store(&driver->silent, true);
    for (struct list *link; (link = list_pop_front(&driver->parts));) {
        struct driver_part *part = LIST_ENTRY(link, struct driver_part, in_driver);
        part->free(part);
    }
    driver->ops->close(driver);
    /* A command that is posted before this store is run below; the thread that posts one after it
     * sees the store and runs the command itself. */
    atomic_store_explicit(&driver->loop_ended, true, memory_order_seq_cst);
    /* Objects that the program does not free keep the driver, but not its descriptors. */
    if (!driver->group) {
        loop_rest(driver->loop);
        wait_for_signals(driver);
        loop_close(driver->loop);
    }
    run_rest(driver);
}

static void *run_thread(void *arg)
{
    struct driver *driver = arg;
    loop_run(driver->loop);
    end_loop(driver);
    driver_unref(driver);
    return NULL;
}

void driver_shutdown(struct driver *driver)
{
    driver_shutdown_for(driver, VIGIL_OK, NULL);
}

void driver_shutdown_for(struct driver *driver, enum vigil_code code, const char *text)
{
    if (atomic_exchange(&driver->shutting_down, true))
        return;
    if (code != VIGIL_OK)
        driver_end_give(&driver->end, code, text);
    driver_ref(driver);
    driver_post(driver, &driver->shutdown);
}

static void *run_end(void *arg)
{
    struct driver *driver = arg;
    end_loop(driver);
    driver_unref(driver);
    return NULL;
}

void driver_free(struct driver *driver)
{
    /* A callback that is made because of this may try the same. */
    if (driver_is_inherited(driver) || atomic_exchange(&driver->quiet, true))
        return;
    bool inside = driver_is_inside(driver);
    assert(!inside || !driver->group);
    if (!inside)
        wait_for_callback(driver, NULL);
    lock_take(&driver->lock);
    driver_changed(driver);
    lock_release(&driver->lock);
    if (driver->own_thread) {
        pthread_t thread = driver->thread;
        bool must_not_wait = driver_must_not_wait(driver);
        atomic_fetch_add(&driver->signalling, 1);
        loop_stop(driver->loop);
        atomic_fetch_sub(&driver->signalling, 1);
        if (must_not_wait) {
            /* The thread is this one or waits for it, and ends after the callback. */
            pthread_detach(thread);
        } else {
            driver_thread_waits(true); /* for the callbacks that the thread makes at its end, too */
            pthread_join(thread, NULL);
            driver_thread_waits(false);
        }
    } else if (inside) {
        driver->free_wanted = true; /* driver_process frees it when its turn is over */
    } else if (driver_must_not_wait(driver)) {
        /* In the program's loop, but inside a callback of the owner: the end waits for what waits
         * for us. */
        pthread_t thread;
        driver_ref(driver);
        if (driver_thread_new(run_end, driver, &thread) == ST_OK)
            pthread_detach(thread); /* otherwise it is never freed */
    } else {
        end_loop(driver);
    }
    if (!driver->free_wanted)
        driver_unref(driver);
}

void driver_free_silently(struct driver *driver)
{
    atomic_store(&driver->silent, true);
    driver_free(driver);
}

/* -- In the program's loop -- */

/* The program makes the turns of a loop that belongs to this client. */
static bool is_in_program(const struct driver *driver)
{
    return !driver->own_thread && !driver->group && !driver_is_inherited(driver);
}

int driver_fd(const struct driver *driver)
{
    return is_in_program(driver) ? loop_fd(driver->loop) : -1;
}

int driver_timeout_ms(const struct driver *driver)
{
    int64_t next = is_in_program(driver) ? loop_next_ns(driver->loop) : CLOCK_NEVER;
    if (next == CLOCK_NEVER)
        return -1;
    int64_t left = next - clock_mono_ns(clock_system());
    if (left <= 0)
        return 0;
    int64_t ms = left / NS_PER_MS + 1;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

void driver_process(struct driver *driver)
{
    if (!is_in_program(driver))
        return;
    loop_turn_nested(driver->loop);
    if (driver->free_wanted) {
        end_loop(driver);
        driver_unref(driver);
    }
}

void driver_process_and_wait(struct driver *driver)
{
    assert(!driver->group);
    struct pollfd waited = {.fd = loop_fd(driver->loop), .events = POLLIN};
    (void)poll(&waited, 1, driver_timeout_ms(driver)); /* interrupted: an early turn */
    driver_process(driver);
}

/* -- The beginning -- */

enum status driver_thread_new(void *(*run)(void *arg), void *arg, pthread_t *ret_thread)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(ret_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? status_from_errno(failed) : ST_OK;
}

enum status driver_init(struct driver *driver, struct network *network,
                        const struct driver_ops *ops)
{
    *driver = (struct driver){
        .own_thread = driver->own_thread,
        .group = driver->group,
        .log = driver->log,
        .log_user = driver->log_user,
        .ops = ops,
        .forks = fork_watch(),
        .refs = 1,
        .shutdown.run = run_shutdown,
    };
    lock_init(&driver->lock);
    pthread_cond_init(&driver->changed, NULL);
    list_init(&driver->members);
    list_init(&driver->parts);
    list_init(&driver->observers);
    if (driver->group) {
        driver->loop = driver->group->loop;
        driver->mailbox = &driver->group->mailbox;
        return ST_OK;
    }
    TRY(network_loop_new(network, &driver->loop));
    driver->mailbox = &driver->own_mailbox;
    loop_attach(driver->loop, driver->mailbox, driver_command_receive, NULL);
    return ST_OK;
}

enum status driver_start(struct driver *driver)
{
    if (driver->own_thread) {
        driver_ref(driver);
        enum status status = driver_thread_new(run_thread, driver, &driver->thread);
        if (status != ST_OK)
            driver_unref(driver);
        return status;
    }
    if (!driver->group)
        loop_turn_nested(driver->loop);
    return ST_OK;
}

void driver_abandon(struct driver *driver)
{
    driver->ops->close(driver);
    driver_unref(driver);
}

/* -- Helpers -- */

void driver_log(void *ctx, int level, const char *text)
{
    struct driver *driver = ctx;
    static const struct driver_object nobody;
    if (driver->log && driver_callback_begin(driver, &nobody)) {
        driver->log(driver->log_user, level, text);
        driver_callback_end(driver);
    }
}

int64_t driver_ns(int64_t ms)
{
    return ms > TIME_MS_MAX ? TIME_MS_MAX * NS_PER_MS : ms * NS_PER_MS;
}
