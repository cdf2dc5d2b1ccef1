#include "client/driver/operation.h"

void operation_ref(struct operation *operation)
{
    atomic_fetch_add_explicit(&operation->refs, 1, memory_order_relaxed);
}

void operation_unref(struct operation *operation)
{
    struct driver *driver = operation->driver;
    if (atomic_fetch_sub_explicit(&operation->refs, 1, memory_order_acq_rel) > 1)
        return;
    operation->ops->free(operation);
    driver_unref(driver);
}

/* -- The loop's thread -- */

void operation_complete(struct operation *operation)
{
    struct driver *driver = operation->driver;
    if (operation->member.in_driver.next)
        list_remove(&operation->member.in_driver);
    /* From here on, a thread that waits for the operation may continue and free it. The loop's
     * reference keeps it until the callback has returned. */
    lock_take(&driver->lock);
    atomic_store_explicit(&operation->completed, true, memory_order_release);
    driver_changed(driver);
    if (operation->ops->publish)
        operation->ops->publish(operation);
    lock_release(&driver->lock);
    if (operation->done && driver_completion_begin(driver, &operation->object)) {
        operation->done(operation);
        driver_callback_end(driver);
    }
    operation_unref(operation);
}

static void end_member(struct driver_member *member)
{
    struct operation *operation = CONTAINER_OF(member, struct operation, member);
    operation->ops->stop(operation, driver_end_code(&operation->driver->end),
                         driver_end_text(&operation->driver->end));
}

static void run_start(struct driver_command *command)
{
    struct operation *operation = CONTAINER_OF(command, struct operation, start);
    struct driver *driver = operation->driver;
    operation->begun = true;
    if (driver->ended || atomic_load(&operation->canceled)) {
        operation->ops->stop(
            operation, driver->ended ? driver_end_code(&driver->end) : VIGIL_ERROR_CANCELED,
            driver->ended ? driver_end_text(&driver->end) : "the call was canceled");
        return;
    }
    list_push_back(&driver->members, &operation->member.in_driver);
    operation->ops->begin(operation);
}

static void run_cancel(struct driver_command *command)
{
    struct operation *operation = CONTAINER_OF(command, struct operation, cancel);
    if (operation->begun && !operation_has_completed(operation)) /* otherwise the start cancels */
        operation->ops->stop(operation, VIGIL_ERROR_CANCELED, "the call was canceled");
    operation_unref(operation);
}

void operation_init(struct operation *operation, struct driver *driver,
                    const struct operation_ops *ops)
{
    *operation = (struct operation){
        .ops = ops,
        .driver = driver,
        .refs = 1,
        .start.run = run_start,
        .cancel.run = run_cancel,
        .member.end = end_member,
        .error.grpc_code = -1,
    };
    driver_ref(driver);
}

/* -- Any thread -- */

int operation_claim(struct operation *operation)
{
    if (!operation)
        return VIGIL_ERROR_MEMORY;
    if (driver_is_inherited(operation->driver))
        return VIGIL_ERROR_SYSTEM;
    return atomic_exchange(&operation->started, true) ? VIGIL_ERROR_ARGUMENT : VIGIL_OK;
}

int operation_post(struct operation *operation)
{
    operation_ref(operation);
    if (driver_post_start(operation->driver, &operation->start))
        return VIGIL_OK;
    atomic_store(&operation->refused, true);
    operation_unref(operation);
    return VIGIL_ERROR_CANCELED;
}

int operation_run(struct operation *operation)
{
    if (!operation)
        return VIGIL_ERROR_MEMORY;
    struct driver *driver = operation->driver;
    if (driver_must_not_wait(driver)) {
        atomic_store(&operation->would_block, true);
        return VIGIL_ERROR_WOULD_BLOCK;
    }
    int code = operation_claim(operation);
    return code == VIGIL_OK ? operation_run_claimed(operation) : code;
}

int operation_run_claimed(struct operation *operation)
{
    struct driver *driver = operation->driver;
    int code = operation_post(operation);
    if (code != VIGIL_OK)
        return code;
    if (driver->own_thread || atomic_load(&driver->loop_ended)) {
        lock_take(&driver->lock);
        while (!operation_has_completed(operation))
            driver_wait(driver);
        lock_release(&driver->lock);
    }
    /* Without a thread of its own, the client makes its turns on this one until it is done. */
    while (!operation_has_completed(operation))
        driver_process_and_wait(driver);
    return operation->error.code;
}

void operation_complete_here(struct operation *operation)
{
    atomic_store_explicit(&operation->completed, true, memory_order_release);
}

/* One that has completed does not wake the loop, because there is nothing to do. */
void operation_cancel(struct operation *operation)
{
    if (!operation || operation_has_completed(operation) ||
        atomic_exchange(&operation->canceled, true) || !atomic_load(&operation->started))
        return;
    operation_ref(operation);
    driver_post(operation->driver, &operation->cancel);
}

void operation_free(struct operation *operation)
{
    if (!operation)
        return;
    driver_drop(operation->driver, &operation->object);
    operation_cancel(operation);
    operation_unref(operation);
}

const vigil_error *operation_error(const struct operation *operation)
{
    static const vigil_error no_memory = {.code = VIGIL_ERROR_MEMORY,
                                          .grpc_code = -1,
                                          .text = "out of memory, or there is no client"};
    static const vigil_error running = {.grpc_code = -1};
    static const vigil_error inherited = {
        .code = VIGIL_ERROR_SYSTEM,
        .grpc_code = -1,
        .text = "the client belongs to the process from which this one was forked",
    };
    static const vigil_error refused = {
        .code = VIGIL_ERROR_CANCELED,
        .grpc_code = -1,
        .text = "the client was freed before the call was started",
    };
    static const vigil_error would_block = {
        .code = VIGIL_ERROR_WOULD_BLOCK,
        .grpc_code = -1,
        .text = "a call cannot be waited for inside a callback; use vigil_call_start or "
                "vigil_kube_call_start",
    };
    if (!operation)
        return &no_memory;
    if (operation_has_completed(operation))
        return &operation->error;
    if (driver_is_inherited(operation->driver))
        return &inherited;
    if (atomic_load(&operation->refused))
        return &refused;
    bool blocked = atomic_load(&operation->would_block) && !atomic_load(&operation->started);
    return blocked ? &would_block : &running;
}
