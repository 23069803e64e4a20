/*
 * lowlat: a trading pipeline in shared memory. This header declares its nodes and recordings for C and C++.
 *
 *   lowlat_strategy_options options = lowlat_strategy_options_default();
 *   options.socket = "/run/lowlat/desk/master.sock"; ...
 *   lowlat_node *node;
 *   if (lowlat_join_strategy(&options, &node)) fail(lowlat_last_error());
 *   while (!is_over) {
 *       lowlat_wait(node, UINT64_MAX);
 *       lowlat_poll(node, on_event, &state, NULL);
 *   }
 *   lowlat_leave(node);
 *
 * Every function that can fail returns a status, 0 for success; lowlat_last_error() has its text. Publishing and polling
 * neither allocate nor make system calls, except to wake a sleeping process. Times are nanoseconds of the
 * pipeline's clock: CLOCK_MONOTONIC, or the time of the recording in a run over one.
 *
 * Obligations of the caller; a violation is undefined behaviour unless a status is named:
 *
 *   - Pointers are NULL, or point to what their type and comment say, and stay valid until the function returns. A handle
 *     comes from this library and has not been released.
 *   - A handle is used by one thread at a time. LOWLAT_STATUS_BUSY reports most violations.
 *   - Pointers in events are not used after the handler has returned. The handler returns: no exception, no longjmp.
 *   - A node belongs to the process that joined. A forked process gets LOWLAT_STATUS_FORKED, and must join itself.
 *   - No function is called from a signal handler.
 *
 * Generated from the sources of pipeline/capi; do not edit.
 */
#ifndef LOWLAT_H
#define LOWLAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// Version of this interface: of its structs, statuses and functions. Joining a master and opening a recording check
// that the program was compiled with the header of the library in use.
#define LOWLAT_ABI_VERSION 5

// wait: sleep until woken.
#define LOWLAT_WAIT_PARKED 0

// wait: spin, and never sleep.
#define LOWLAT_WAIT_FAST 1

// wait: spin as long as that pays, then sleep.
#define LOWLAT_WAIT_ADAPTIVE 2

// which: all records of the streams.
#define LOWLAT_KEYS_ALL 0

// which: those of the instruments in keys; for answers, those for the strategies in keys.
#define LOWLAT_KEYS_ONLY 1

// which: those with the node's own number.
#define LOWLAT_KEYS_OWN 2

// overrun: records that find the reader's ring full are lost, and it learns their number, in place.
#define LOWLAT_OVERRUN_GAP 0

// overrun: the reader gets the latest record of each instrument.
#define LOWLAT_OVERRUN_CONFLATE 1

// overrun: nothing is lost; while the reader has no room, its publisher gets LOWLAT_STATUS_NO_CREDIT. Only for streams
// whose writer accepts that, which are those of orders; for others it equals LOWLAT_OVERRUN_GAP.
#define LOWLAT_OVERRUN_CREDIT 2

// overrun: a reader with more pending records than behind_max loses all of them and learns their number.
#define LOWLAT_OVERRUN_EVICT 3

// start: the first record that is published after the node has joined.
#define LOWLAT_START_HEAD 0

// start: the oldest record that the stream's ring has kept.
#define LOWLAT_START_OLDEST 1

// start: the record after start_after, which is the sequence of the last one that the node has read in a recording of the
// same run. Records that are not kept any more are lost.
#define LOWLAT_START_AFTER 2

// number: an unused one, assigned by the master.
#define LOWLAT_NUMBER_FREE UINT32_MAX

// Prices are whole numbers in units of 1/LOWLAT_PRICE_SCALE of the instrument's currency.
#define LOWLAT_PRICE_SCALE 10000

// Version of the payloads below, in stamp.schema.
#define LOWLAT_SCHEMA 1

// stamp.kind of a lowlat_quote.
#define LOWLAT_KIND_QUOTE 1

// stamp.kind of a lowlat_order.
#define LOWLAT_KIND_ORDER 2

// stamp.kind of a lowlat_answer.
#define LOWLAT_KIND_ANSWER 3

// side: buy.
#define LOWLAT_SIDE_BUY 0

// side: sell.
#define LOWLAT_SIDE_SELL 1

// type: at the order's price or better; what is left rests in the book.
#define LOWLAT_TYPE_LIMIT 0

// type: at any price; what is left is cancelled.
#define LOWLAT_TYPE_MARKET 1

// type: at the order's price or better; what is left is cancelled.
#define LOWLAT_TYPE_IMMEDIATE_OR_CANCEL 2

// action: a new order.
#define LOWLAT_ACTION_NEW 0

// action: cancels what is left of the order with this number.
#define LOWLAT_ACTION_CANCEL 1

// action: changes the price and the quantity of the order with this number.
#define LOWLAT_ACTION_REPLACE 2

// outcome: the order is accepted; fills may follow.
#define LOWLAT_OUTCOME_ACCEPTED 0

// outcome: the order is filled, with this quantity and price.
#define LOWLAT_OUTCOME_FILLED 1

// outcome: what was left of the order, this quantity, is cancelled; nothing follows. Orders that may not rest, and those
// of a halted strategy, are cancelled without a request.
#define LOWLAT_OUTCOME_CANCELLED 2

// outcome: the order has this quantity and price now; fills may follow.
#define LOWLAT_OUTCOME_REPLACED 3

// outcome: values from this on, below LOWLAT_OUTCOME_NOT_CHANGED, mean that the order is rejected: 16 bad price, 17
// unknown instrument, 18 bad quantity, 19 over a limit, 20 duplicate number, 21 no exchange or not supported by it,
// 22 unknown order, 23 strategy halted, 24 too many requests in a second.
#define LOWLAT_OUTCOME_REJECTED 16

// outcome: values from this on mean that a cancel or a replace changed nothing, and the order, if it is open, stays as it
// is. They are 16 above the codes of the reasons: 38 means that the strategy has no open order with this number and
// instrument.
#define LOWLAT_OUTCOME_NOT_CHANGED 32

// event.kind: event.record is a record.
#define LOWLAT_EVENT_RECORD 1

// event.kind: event.lost records of event.stream are lost: the node was too slow, or they are missing from the
// recording.
#define LOWLAT_EVENT_LOST 2

// event.kind: all nodes have joined; publishing may start.
#define LOWLAT_EVENT_BEGIN 3

// event.kind: the node should stop; lowlat_ended returns the reason, if the master did not request it.
#define LOWLAT_EVENT_STOP 4

// event.kind: event.text is a command of the master's user.
#define LOWLAT_EVENT_COMMAND 5

// event.kind: event.text describes damage of a recording. Reading continues after it.
#define LOWLAT_EVENT_DAMAGE 6

// event.kind: the time set with lowlat_set_timer has come; it is event.due_ns.
#define LOWLAT_EVENT_TIMER 7

// Result of a function.
enum lowlat_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Success.
    LOWLAT_STATUS_OK = 0,
    // An invalid argument: NULL, not UTF-8, or a number out of range.
    LOWLAT_STATUS_ARGUMENT = 1,
    // The program was compiled with the header of another version.
    LOWLAT_STATUS_VERSION = 2,
    // The node is in use: its handler is running, or another thread is in one of its functions.
    LOWLAT_STATUS_BUSY = 3,
    // No master listens at the socket.
    LOWLAT_STATUS_UNREACHABLE = 4,
    // The master refused this node, when it joined or later, or the stream refused this record.
    LOWLAT_STATUS_REFUSED = 5,
    // The master did not answer, or closed the connection.
    LOWLAT_STATUS_SILENT = 6,
    // The master's data is unusable: processes of different versions, or no memory to map.
    LOWLAT_STATUS_UNUSABLE = 7,
    // A system error.
    LOWLAT_STATUS_SYSTEM = 8,
    // The node joined without a stream.
    LOWLAT_STATUS_NO_STREAM = 9,
    // The master dropped this process, and another may have replaced it. Exit and restart.
    LOWLAT_STATUS_FENCED = 10,
    // The master died without stopping its nodes, and they stop with it.
    LOWLAT_STATUS_MASTER_GONE = 11,
    // The payload is too long for the stream.
    LOWLAT_STATUS_TOO_LONG = 12,
    // A subscriber that must not lose records has no room. Retry once it has read.
    LOWLAT_STATUS_NO_CREDIT = 13,
    // The record has another kind, or is damaged.
    LOWLAT_STATUS_WRONG_RECORD = 14,
    // The recording cannot be read.
    LOWLAT_STATUS_JOURNAL = 15,
    // The recording has no more records.
    LOWLAT_STATUS_END = 16,
    // The node belongs to the process that this one was forked from. Join in this process.
    LOWLAT_STATUS_FORKED = 17,
    // The run's master has no ledger of td, with the open orders and positions of strategies.
    LOWLAT_STATUS_NO_LEDGER = 18,
    // td changes its ledger all the time, or died in the middle of a change. Try again.
    LOWLAT_STATUS_LEDGER_BUSY = 19,
    // The array is too small for all of them.
    LOWLAT_STATUS_TOO_MANY = 20,
    // A bug in this library. The handle is unusable: release it.
    LOWLAT_STATUS_INTERNAL = 99,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum lowlat_status lowlat_status;
#else
typedef uint32_t lowlat_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A recording that is read from start to end, with the records of the selected streams in order of time.
typedef struct lowlat_journal lowlat_journal;

// A node of the pipeline.
//
// It is used by one thread at a time, and handed to another with a lock, a join or the like. A call from a
// second thread usually returns LOWLAT_STATUS_BUSY. Two calls that start within the same nanoseconds may not
// detect each other, and are undefined behaviour.
//
// It belongs to the process that joined. In a forked process every function returns LOWLAT_STATUS_FORKED,
// except lowlat_leave, which does nothing: the parent's node is unaffected.
typedef struct lowlat_node lowlat_node;

// Header fields of a record, besides its payload.
typedef struct lowlat_stamp {
    // Kind of the payload: LOWLAT_KIND_..., or a custom kind below 0xff00.
    uint16_t kind;
    // Version of the payload's format.
    uint16_t schema;
    // The instrument, which selects the readers; for an answer, the number of its strategy.
    uint32_t instrument;
    // Source: the strategy's number for an order, else the node's.
    uint32_t source;
    // 0.
    uint32_t reserved;
    // When it was written, ns of the pipeline's clock. When publishing, 0 means now.
    uint64_t generated_ns;
    // When the record that caused it was written. When publishing, 0 means its own time.
    uint64_t trigger_ns;
    // Sequence of the record that caused it; 0 without a cause.
    uint64_t cause_sequence;
} lowlat_stamp;

// A record. It and what it points to are valid until the handler returns, or until the next
// lowlat_journal_next.
typedef struct lowlat_record {
    // The stream: "md", "td", "orders.NAME", ...
    const char *stream;
    // Its payload, unaligned.
    const uint8_t *payload;
    // Bytes of the payload.
    size_t payload_bytes;
    // Its sequence in the stream.
    uint64_t sequence;
    // When this process had read it, ns of the pipeline's clock; 0 in a recording.
    uint64_t received_ns;
    // Its header fields.
    struct lowlat_stamp stamp;
} lowlat_record;

// Best bid and offer of an instrument, which is stamp.instrument. Prices in LOWLAT_PRICE_SCALE-ths.
typedef struct lowlat_quote {
    // When it was due in its schedule, ns of the pipeline's clock.
    uint64_t scheduled_ns;
    // Best bid; 0: none.
    int64_t bid;
    // Best offer; 0: none.
    int64_t ask;
    // Last trade.
    int64_t last;
    // Size at the bid.
    uint32_t bid_size;
    // Size at the offer.
    uint32_t ask_size;
} lowlat_quote;

// A strategy's request: a new order, or a change of one. To send an order, set instrument, side, price and quantity, and
// type unless it is a limit order; action stays 0. lowlat_send_order sets the other fields.
typedef struct lowlat_order {
    // The strategy's number of the order, never reused, even after restarts. Answers and changes refer to it.
    uint64_t number;
    // When the quote that caused it was due.
    uint64_t scheduled_ns;
    // When the strategy had read that quote.
    uint64_t received_ns;
    // Limit price in LOWLAT_PRICE_SCALE-ths; without effect in a cancel, and in a market order that quotes fill.
    int64_t price;
    // The whole quantity, with what is filled; without effect in a cancel.
    uint32_t quantity;
    // LOWLAT_SIDE_...; without effect in a change.
    uint32_t side;
    // The instrument.
    uint32_t instrument;
    // LOWLAT_TYPE_...; without effect in a change.
    uint32_t type;
    // LOWLAT_ACTION_...
    uint32_t action;
    // 0.
    uint32_t reserved;
} lowlat_order;

// td's answer to a request. Each order gets exactly one answer that accepts or rejects it. Each cancel and each replace
// gets one that cancels, replaces or changes nothing.
typedef struct lowlat_answer {
    // The order's number.
    uint64_t order_number;
    // When td had read the order, ns of the pipeline's clock.
    uint64_t received_ns;
    // Price of the fill; in other answers that of the order.
    int64_t price;
    // Quantity of the fill; in other answers that of the order.
    uint32_t quantity;
    // LOWLAT_OUTCOME_...
    uint32_t outcome;
    // The order's instrument.
    uint32_t instrument;
    // The order's side.
    uint32_t side;
} lowlat_answer;

// Streams that a node reads.
typedef struct lowlat_reads {
    // A stream's name, or a prefix and a star: "orders.*". The streams need not exist yet.
    const char *streams;
    // Instruments, with LOWLAT_KEYS_ONLY.
    const uint32_t *keys;
    // Number of keys.
    size_t key_count;
    // LOWLAT_KEYS_...
    uint32_t which;
    // LOWLAT_OVERRUN_...
    uint32_t overrun;
    // With LOWLAT_OVERRUN_EVICT: maximum number of pending records.
    uint64_t behind_max;
    // LOWLAT_START_...
    uint32_t start;
    // 0.
    uint32_t reserved;
    // With LOWLAT_START_AFTER: a sequence.
    uint64_t start_after;
} lowlat_reads;

// Options of a node. Start with lowlat_node_options_default(), which sets the first two fields.
typedef struct lowlat_node_options {
    // sizeof(lowlat_node_options).
    uint32_t size_bytes;
    // LOWLAT_ABI_VERSION.
    uint32_t abi_version;
    // The master's socket: FOLDER/master.sock.
    const char *socket;
    // The node's name, unique among the nodes of the master. A process restarted under it keeps its number.
    const char *name;
    // Its role, for display; NULL: "node".
    const char *role;
    // The stream that it writes; NULL: none.
    const char *writes;
    // Bytes of that stream's ring: a power of two, at least 4096; 0: 1 MiB.
    uint64_t capacity_bytes;
    // Upper bound of that stream's instruments; 0: 1.
    uint32_t keys;
    // LOWLAT_WAIT_...
    uint32_t wait;
    // The streams that it reads.
    const struct lowlat_reads *reads;
    // Number of reads.
    size_t reads_count;
} lowlat_node_options;

// Options of a strategy: it reads its instruments of "md" and its answers of "td", and writes "orders.NAME".
// Start with lowlat_strategy_options_default(), which sets the first two fields, and number to
// LOWLAT_NUMBER_FREE.
typedef struct lowlat_strategy_options {
    // sizeof(lowlat_strategy_options).
    uint32_t size_bytes;
    // LOWLAT_ABI_VERSION.
    uint32_t abi_version;
    // The master's socket: FOLDER/master.sock.
    const char *socket;
    // The node's name, unique among the nodes of the master.
    const char *name;
    // The strategy's number: LOWLAT_NUMBER_FREE, or a number below 16384, which the master refuses if another
    // strategy has it. A node that restarts under its name gets the same free number.
    uint32_t number;
    // LOWLAT_WAIT_...
    uint32_t wait;
    // The instruments whose quotes it reads.
    const uint32_t *instruments;
    // Number of instruments.
    size_t instrument_count;
    // Bytes of its orders' ring: a power of two, at least 4096; 0: 1 MiB.
    uint64_t capacity_bytes;
    // LOWLAT_OVERRUN_... for quotes.
    uint32_t overrun;
    // LOWLAT_START_... for quotes.
    uint32_t start;
    // With LOWLAT_OVERRUN_EVICT: maximum number of pending quotes.
    uint64_t behind_max;
    // With LOWLAT_START_AFTER: a sequence.
    uint64_t start_after;
    // Other streams that it reads.
    const struct lowlat_reads *reads;
    // Number of reads.
    size_t reads_count;
} lowlat_strategy_options;

// An event of a node or a recording. It and what it points to are valid as long as a record is.
typedef struct lowlat_event {
    // LOWLAT_EVENT_... Ignore unknown kinds.
    uint32_t kind;
    // 0.
    uint32_t reserved;
    // The stream of a record or of lost records; else NULL.
    const char *stream;
    // The record; else NULL.
    const struct lowlat_record *record;
    // Number of lost records.
    uint64_t lost;
    // A command, a description of damage, why records are missing from a recording; else NULL.
    const char *text;
    // The time of a timer.
    uint64_t due_ns;
} lowlat_event;

// An order that is accepted and neither filled nor cancelled.
typedef struct lowlat_open_order {
    // The strategy's number of it.
    uint64_t number;
    // Limit price in LOWLAT_PRICE_SCALE-ths.
    int64_t price;
    // The whole quantity, with what is filled.
    uint32_t quantity;
    // The part of it that is filled.
    uint32_t filled;
    // The instrument.
    uint32_t instrument;
    // LOWLAT_SIDE_...
    uint32_t side;
} lowlat_open_order;

// The position of a strategy in an instrument.
typedef struct lowlat_position {
    // The instrument.
    uint32_t instrument;
    // 0.
    uint32_t reserved;
    // Positive if bought, negative if sold.
    int64_t quantity;
} lowlat_position;

// Called by lowlat_poll with each event. It may publish, send and change orders and look them up through
// `node`, and read records; lowlat_poll, lowlat_wait, lowlat_ended and lowlat_leave return LOWLAT_STATUS_BUSY. It must return: neither
// exceptions nor longjmp may leave it.
typedef void (*lowlat_handler)(void *user, struct lowlat_node *node, const struct lowlat_event *event);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of lowlat, such as "0.1.0". The text is valid as long as the program runs.
const char *lowlat_version(void);

// LOWLAT_ABI_VERSION of the library; the constant is that of the header.
uint32_t lowlat_abi_version(void);

// Now, in the pipeline's clock: nanoseconds of CLOCK_MONOTONIC, or of the recording in a run over one. A process has the
// clock of the run that it joined last.
uint64_t lowlat_now_ns(void);

// Decodes the quote in a record. Returns LOWLAT_STATUS_WRONG_RECORD if it is not a quote.
lowlat_status lowlat_quote_of(const struct lowlat_record *record, struct lowlat_quote *quote);

// Decodes the order in a record. Returns LOWLAT_STATUS_WRONG_RECORD if it is not an order.
lowlat_status lowlat_order_of(const struct lowlat_record *record, struct lowlat_order *order);

// Decodes the answer in a record. Returns LOWLAT_STATUS_WRONG_RECORD if it is not an answer.
lowlat_status lowlat_answer_of(const struct lowlat_record *record, struct lowlat_answer *answer);

// Text of the last call of this thread that did not return LOWLAT_STATUS_OK: what was found, what was
// expected, and what to do. "" before the first. Valid until the next such call of this thread.
const char *lowlat_last_error(void);

// Joins the master that listens at a socket, and returns a node, to be released with lowlat_leave. Once it
// returns, the node loses nothing that is published from then on. It may take up to 30 s if the master or a
// publisher is slow.
lowlat_status lowlat_join(const struct lowlat_node_options *options, struct lowlat_node **node);

// Joins as a strategy, and returns a node, to be released with lowlat_leave. Otherwise like lowlat_join.
lowlat_status lowlat_join_strategy(const struct lowlat_strategy_options *options, struct lowlat_node **node);

// lowlat_journal_open, which programs call, with the version of its header.
lowlat_status lowlat_journal_open_version(uint32_t abi_version,
                                          const char *folder,
                                          const char *streams,
                                          struct lowlat_journal **journal);

// Returns the next event: LOWLAT_EVENT_RECORD, LOWLAT_EVENT_LOST or LOWLAT_EVENT_DAMAGE. The status is
// LOWLAT_STATUS_END if there is none. The event is valid until the next call.
lowlat_status lowlat_journal_next(struct lowlat_journal *journal, const struct lowlat_event **event);

// Sets `offset_ns` to what a record's times need for the time of day, in ns since 1970 in UTC. The status is
// LOWLAT_STATUS_JOURNAL if the recording has no clock.
lowlat_status lowlat_journal_realtime_offset(const struct lowlat_journal *journal, int64_t *offset_ns);

// Releases a recording. NULL is ignored.
lowlat_status lowlat_journal_close(struct lowlat_journal *journal);

// Copies the open orders of the node's strategy into an array, by number, also those of its earlier processes. Sets
// `count` to their number. If that is above `capacity`, the first ones are copied and the status is
// LOWLAT_STATUS_TOO_MANY; `orders` may be NULL if `capacity` is 0. td enters a request after it has published its
// answers, so an answer may be read first. Not for the hot path: it reads a table of all strategies. A handler may call
// it.
lowlat_status lowlat_open_orders(const struct lowlat_node *node,
                                 struct lowlat_open_order *orders,
                                 size_t capacity,
                                 size_t *count);

// Copies the positions of the node's strategy that are not 0 into an array, by instrument. Otherwise like
// lowlat_open_orders.
lowlat_status lowlat_positions(const struct lowlat_node *node,
                               struct lowlat_position *positions,
                               size_t capacity,
                               size_t *count);

// Passes available events to the handler, and never blocks. Sets `events` to their number; it may be NULL.
lowlat_status lowlat_poll(struct lowlat_node *node, lowlat_handler handler, void *user, size_t *events);

// Waits, as configured in the node's options, until a poll would find something or the pipeline's clock shows
// `until_ns` (lowlat_now_ns; UINT64_MAX: no limit). Signals do not end it: pass a limit if a flag must be
// checked.
lowlat_status lowlat_wait(struct lowlat_node *node, uint64_t until_ns);

// A poll from `at_ns` of the pipeline's clock on returns LOWLAT_EVENT_TIMER, once, and no wait lasts longer. Replaces the
// time set before; UINT64_MAX sets none. A handler may call it.
lowlat_status lowlat_set_timer(struct lowlat_node *node,
                               uint64_t at_ns);

// Sets `descriptor` to one that is readable while a poll may find something, for epoll and the like. Each time it is
// readable, call lowlat_poll; it is readable now and then without an event, too. From then on a thread of this library
// waits for the node, which does not spin any more. It is valid until lowlat_leave; do not read or close it.
lowlat_status lowlat_node_descriptor(struct lowlat_node *node,
                                     int *descriptor);

// Why the node ended, according to the last poll or wait. LOWLAT_STATUS_OK while it may continue, and after
// its master has stopped it, which is the normal end. LOWLAT_STATUS_MASTER_GONE if the master died,
// LOWLAT_STATUS_FENCED if it dropped this process, LOWLAT_STATUS_REFUSED if it refused the node after it had
// joined.
lowlat_status lowlat_ended(const struct lowlat_node *node);

// Number of the node, below 1024: the same after a restart under the same name. UINT32_MAX for NULL.
uint32_t lowlat_node_number(const struct lowlat_node *node);

// Number of the node's strategy, which identifies its orders and answers: the one that it joined with, or that
// the master assigned. UINT32_MAX for NULL, and for a node that did not join with lowlat_join_strategy.
uint32_t lowlat_node_strategy(const struct lowlat_node *node);

// Number of processes under the node's name, including this one: 1 for the first. 0 for NULL.
uint64_t lowlat_node_epoch(const struct lowlat_node *node);

// Leaves the master and releases the node, which must not be used after LOWLAT_STATUS_OK. LOWLAT_STATUS_BUSY
// if it is in use; nothing is released then. NULL is ignored. In a forked process it does nothing: the memory
// remains until that process ends.
lowlat_status lowlat_leave(struct lowlat_node *node);

// Appends a record to the node's stream and delivers it to every reader that wants stamp.instrument; sleeping
// readers are woken, each with a system call. Sets `sequence` to its number; it may be NULL. Publish after
// LOWLAT_EVENT_BEGIN if all readers must get the record.
lowlat_status lowlat_publish(struct lowlat_node *node,
                             const struct lowlat_stamp *stamp,
                             const void *payload,
                             size_t payload_bytes,
                             uint64_t *sequence);

// Sends a new order of a node that joined with lowlat_join_strategy. The caller sets instrument, side, price, quantity
// and type; number, scheduled_ns and received_ns are filled in. `cause` is the record that caused it, from
// which tick-to-order latency is measured; NULL: none, so latency is measured from now.
lowlat_status lowlat_send_order(struct lowlat_node *node,
                                const struct lowlat_record *cause,
                                struct lowlat_order *order);

// Asks td to cancel what is left of an order of the node's strategy. The answer is LOWLAT_OUTCOME_CANCELLED or one of
// LOWLAT_OUTCOME_NOT_CHANGED. `cause` is as for lowlat_send_order.
lowlat_status lowlat_cancel_order(struct lowlat_node *node,
                                  const struct lowlat_record *cause,
                                  uint32_t instrument,
                                  uint64_t number);

// Asks td to change an order of the node's strategy: `quantity` is the whole one, with what is filled. The order keeps
// its place in the queue if the price stays and the quantity does not grow. The answer is LOWLAT_OUTCOME_REPLACED or one
// of LOWLAT_OUTCOME_NOT_CHANGED. `cause` is as for lowlat_send_order.
lowlat_status lowlat_replace_order(struct lowlat_node *node,
                                   const struct lowlat_record *cause,
                                   uint32_t instrument,
                                   uint64_t number,
                                   int64_t price,
                                   uint32_t quantity);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

// Options with the size and version of this header, and zeros.
static inline lowlat_node_options lowlat_node_options_default(void)
{
    lowlat_node_options options;
    memset(&options, 0, sizeof options);
    options.size_bytes = (uint32_t)sizeof options;
    options.abi_version = LOWLAT_ABI_VERSION;
    return options;
}

// Options with the size and version of this header, a free number, and zeros.
static inline lowlat_strategy_options lowlat_strategy_options_default(void)
{
    lowlat_strategy_options options;
    memset(&options, 0, sizeof options);
    options.size_bytes = (uint32_t)sizeof options;
    options.abi_version = LOWLAT_ABI_VERSION;
    options.number = LOWLAT_NUMBER_FREE;
    return options;
}

// Opens the recording in a directory. `streams` is a stream's name, or a prefix and a star ("orders.*"); NULL: all.
// Release it with lowlat_journal_close.
static inline lowlat_status lowlat_journal_open(const char *folder, const char *streams, lowlat_journal **journal)
{
    return lowlat_journal_open_version(LOWLAT_ABI_VERSION, folder, streams, journal);
}

#endif /* LOWLAT_H */
