#include "io/waker.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    SPIN_ROUNDS = 400,      /* about 10 us of looking */
    SPIN_PAUSE_MAX = 1 << 8 /* at worst one look in so many waits */
};

void waker_init_thread(struct waker *waker)
{
    *waker = (struct waker){.event_fd = -1, .spin_rounds = SPIN_ROUNDS};
}

enum status waker_init_event(struct waker *waker)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return status_from_errno(errno);
    *waker = (struct waker){.event_fd = fd, .spin_rounds = SPIN_ROUNDS};
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
    /* The counter is never read (the watch is edge-triggered); it cannot fill in our lifetime. */
    ssize_t written = write(fd, &one, sizeof(one));
    assert(written == (ssize_t)sizeof(one));
}

void waker_wake(struct waker *waker)
{
    /* An exchange, not a store: what was published before is seen by whoever takes the wake-up. */
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
    assert(was != WAKER_ANNOUNCED); /* one sleeper */
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

bool waker_look(struct waker *waker, bool (*ready)(void *ctx), void *ctx)
{
    if (waker->spin_pause > 0) {
        waker->spin_pause--;
        return ready(ctx);
    }
    for (uint32_t i = 0; i < waker->spin_rounds; i++) {
        if (ready(ctx)) {
            waker->spin_misses = 0;
            return true;
        }
        cpu_relax();
    }
    if (waker->spin_misses < 8)
        waker->spin_misses++;
    waker->spin_pause = (1u << waker->spin_misses) - 1;
    static_assert(SPIN_PAUSE_MAX == 1 << 8, "spin_misses stops there");
    return false;
}
