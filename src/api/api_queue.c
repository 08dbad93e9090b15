/* api_queue.c - the public functions of pith/queue.h. */
#include "api/entry.h"
#include "models/queue/queue.h"

pith_status pith_queue_create(pith_queue **queue, const pith_model *model,
                              const pith_queue_options *options, pith_error *err) {
    PITH_ENTRY(pith__queue_create(queue, model, options, err));
}

void pith_queue_destroy(pith_queue *queue) { pith__queue_destroy(queue); }

pith_status pith_queue_submit(uint64_t *ticket, pith_queue *queue, const pith_request *request,
                              pith_error *err) {
    PITH_ENTRY(pith__queue_submit(ticket, queue, request, err));
}

pith_status pith_queue_cancel(pith_queue *queue, uint64_t ticket, pith_error *err) {
    PITH_ENTRY(pith__queue_cancel(queue, ticket, err));
}

pith_status pith_queue_drain(pith_queue *queue, const pith_call *call, pith_error *err) {
    PITH_ENTRY(pith__queue_drain(queue, call, err));
}

pith_status pith_queue_report(pith_queue_statistics *statistics, const pith_queue *queue,
                              pith_error *err) {
    PITH_ENTRY(pith__queue_report(statistics, queue, err));
}
