#include "fiber.h"

#include "base/memory/sanitizer.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(SANITIZER_ADDRESS)
#include <sanitizer/common_interface_defs.h>
#elif defined(SANITIZER_MEMORY)
#include <sanitizer/msan_interface.h>
#endif

enum { STACK_BYTES = 1 << 20, GUARD_BYTES = 4096 };

struct fiber {
    ucontext_t context;
    void (*fn)(void *arg);
    void *arg;
    char *stack; /* owned; a guard page is below it */
    bool ended;
    struct fiber *next; /* among the free ones */
};

static struct {
    ucontext_t context; /* context of the root */
    struct fiber *running;
    struct fiber *free;
    const void *stack; /* stack of the root, if a sanitizer tells */
    size_t stack_bytes;
} root;

/* These sanitizers have to know of every switch, before and after it. fake is what the address
 * sanitizer keeps of the stack that is left; it is NULL when the fiber ends. */
static void switch_begin(void **fake, const void *stack, size_t bytes)
{
#if defined(SANITIZER_ADDRESS)
    __sanitizer_start_switch_fiber(fake, stack, bytes);
#elif defined(SANITIZER_MEMORY)
    (void)fake;
    __msan_start_switch_fiber(stack, bytes);
#else
    (void)fake, (void)stack, (void)bytes;
#endif
}

/* Tells where the stack is that was left. */
static void switch_end(void *fake, const void **ret_stack, size_t *ret_bytes)
{
#if defined(SANITIZER_ADDRESS)
    __sanitizer_finish_switch_fiber(fake, ret_stack, ret_bytes);
#elif defined(SANITIZER_MEMORY)
    (void)fake;
    __msan_finish_switch_fiber(ret_stack, ret_bytes);
#else
    (void)fake, (void)ret_stack, (void)ret_bytes;
#endif
}

static void arrive_at_fiber(void *fake)
{
    switch_end(fake, &root.stack, &root.stack_bytes);
}

static void leave(struct fiber *fiber, void **fake)
{
    switch_begin(fake, root.stack, root.stack_bytes);
    swapcontext(&fiber->context, &root.context);
}

static void fiber_main(void)
{
    arrive_at_fiber(NULL);
    struct fiber *fiber = root.running;
    fiber->fn(fiber->arg);
    fiber->ended = true;
    leave(fiber, NULL);
    abort(); /* it has ended */
}

static struct fiber *make(void)
{
    struct fiber *fiber = calloc(1, sizeof(*fiber));
    char *memory = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!fiber || memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) != 0)
        abort();
    fiber->stack = memory + GUARD_BYTES;
    return fiber;
}

__attribute__((noinline)) static void prepare(struct fiber *fiber)
{
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack;
    fiber->context.uc_stack.ss_size = STACK_BYTES;
    fiber->context.uc_link = NULL;
    makecontext(&fiber->context, fiber_main, 0);
}

struct fiber *fiber_new(void (*fn)(void *arg), void *arg)
{
    struct fiber *fiber = root.free ? root.free : make();
    root.free = fiber->next;
    sanitizer_show(fiber->stack, STACK_BYTES);
    fiber->next = NULL;
    fiber->fn = fn;
    fiber->arg = arg;
    fiber->ended = false;
    prepare(fiber);
    return fiber;
}

void fiber_free(struct fiber *fiber)
{
    assert(fiber->ended);
    fiber->next = root.free;
    root.free = fiber;
}

void fiber_continue(struct fiber *fiber)
{
    assert(!root.running && !fiber->ended);
    void *fake = NULL;
    root.running = fiber;
    switch_begin(&fake, fiber->stack, STACK_BYTES);
    swapcontext(&root.context, &fiber->context);
    switch_end(fake, NULL, NULL);
    root.running = NULL;
}

void fiber_yield(void)
{
    struct fiber *fiber = root.running;
    void *fake = NULL;
    assert(fiber);
    leave(fiber, &fake);
    arrive_at_fiber(fake);
}

bool fiber_has_ended(const struct fiber *fiber)
{
    return fiber->ended;
}

struct fiber *fiber_running(void)
{
    return root.running;
}
