#include "io/waker.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* About as long as a sleep and a wake-up take on a busy machine. */
#define LOOK_NS_MAX (5 * NS_PER_US)
enum {
    LOOKS_BETWEEN_CLOCKS = 16,
    MISSES_MAX = 8, /* then one wait in 2^8 polls */
};

void waker_init_thread(struct waker *waker)
{
    *waker = (struct waker){.event_fd = -1};
}

enum status waker_init_event(struct waker *waker)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return status_from_errno(errno);
    *waker = (struct waker){.event_fd = fd};
    return ST_OK;
}

void waker_fini(struct waker *waker)
{
    if (waker->event_fd > 0)
        close(waker->event_fd);
    waker->event_fd = -1;
}

static void signal_event(int fd)
{
    uint64_t one = 1;
    /* The counter is never read (the watch is edge-triggered), and cannot overflow in practice. */
    ssize_t written = write(fd, &one, sizeof(one));
    assert(written == (ssize_t)sizeof(one));
}

void waker_wake(struct waker *waker)
{
    /* An exchange, not a store: what was published before is visible to the thread that takes the
     * wake-up. */
    if (atomic_exchange_explicit(&waker->state, WAKER_NOTIFIED, memory_order_seq_cst) !=
        WAKER_ANNOUNCED)
        return;
    if (waker->event_fd >= 0)
        signal_event(waker->event_fd);
    else
        syscall(SYS_futex, &waker->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

bool waker_announce(struct waker *waker)
{
    uint32_t was = atomic_exchange_explicit(&waker->state, WAKER_ANNOUNCED, memory_order_seq_cst);
    assert(was != WAKER_ANNOUNCED); /* there is only one sleeper */
    if (was == WAKER_AWAKE)
        return true;
    waker_retract(waker);
    return false;
}

void waker_sleep(struct waker *waker, int64_t timeout_ns)
{
    assert(waker->event_fd < 0);
    if (timeout_ns <= 0)
        return;
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / NS_PER_S),
                               .tv_nsec = (long)(timeout_ns % NS_PER_S)};
    syscall(SYS_futex, &waker->state, FUTEX_WAIT_PRIVATE, WAKER_ANNOUNCED,
            timeout_ns == CLOCK_NEVER ? NULL : &timeout, NULL, 0);
}

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

static bool look_for_a_while(bool (*ready)(void *ctx), void *ctx)
{
    int64_t start = clock_mono_ns(clock_system());
    do {
        for (int i = 0; i < LOOKS_BETWEEN_CLOCKS; i++) {
            if (ready(ctx))
                return true;
            cpu_relax();
        }
    } while (clock_mono_ns(clock_system()) - start < LOOK_NS_MAX);
    return false;
}

bool waker_look(struct waker *waker, bool (*ready)(void *ctx), void *ctx)
{
    if (ready(ctx))
        return true;
    if (waker->look_pause > 0) {
        waker->look_pause--;
        return false;
    }
    if (look_for_a_while(ready, ctx)) {
        waker->look_misses = 0;
        return true;
    }
    if (waker->look_misses < MISSES_MAX)
        waker->look_misses++;
    waker->look_pause = (1u << waker->look_misses) - 1;
    return false;
}
