/*
 * lowlat: a trading pipeline in shared memory. This header: its nodes and recordings for C and C++.
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
 * neither allocate nor call the kernel, but to wake a sleeping process. Times are nanoseconds of CLOCK_MONOTONIC.
 *
 * What the caller promises; breaking a promise is undefined behaviour unless a status is named:
 *
 *   - Pointers are NULL, or of what their type and comment say, and stay valid until the function returns. A handle comes
 *     from this library and has not been released.
 *   - A handle is used by one thread at a time. LOWLAT_STATUS_BUSY reports most violations.
 *   - Pointers in events are not used after the handler has returned. The handler returns: no exception, no longjmp.
 *   - A node belongs to the process that joined. A forked process gets LOWLAT_STATUS_FORKED, and joins for itself.
 *   - No function is called from a signal handler.
 *
 * Made of the sources of crates/capi; do not edit.
 */
#ifndef LOWLAT_H
#define LOWLAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

// The version of this interface: of its structs, statuses and functions. Joining checks that the program was compiled with
// the header of the library that it runs with.
#define LOWLAT_ABI_VERSION 2

// wait: sleep until woken.
#define LOWLAT_WAIT_PARKED 0

// wait: spin, and never sleep.
#define LOWLAT_WAIT_FAST 1

// wait: spin for as long as that pays, then sleep.
#define LOWLAT_WAIT_ADAPTIVE 2

// which: all records of the streams.
#define LOWLAT_KEYS_ALL 0

// which: those of the instruments in keys; of answers those for the strategies in keys.
#define LOWLAT_KEYS_ONLY 1

// which: those whose number is the node's own.
#define LOWLAT_KEYS_OWN 2

// number: one that no other strategy of the master has, which the master chooses.
#define LOWLAT_NUMBER_FREE UINT32_MAX

// Prices are whole numbers: so many of them make one of the instrument's currency.
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

// outcome: the order is taken; fills may follow.
#define LOWLAT_OUTCOME_ACCEPTED 0

// outcome: the order traded; quantity and price say how much at what price.
#define LOWLAT_OUTCOME_FILLED 1

// outcome: this or more says that the order is refused: 16 bad price, 17 unknown instrument, 18 bad quantity, 19 over a
// limit, 20 a number that was used before.
#define LOWLAT_OUTCOME_REJECTED 16

// event.kind: event.record is a record.
#define LOWLAT_EVENT_RECORD 1

// event.kind: event.lost records of event.stream are lost: the node was too slow, or, of a recording, they are not in it.
#define LOWLAT_EVENT_LOST 2

// event.kind: all nodes are there; publishing may begin.
#define LOWLAT_EVENT_BEGIN 3

// event.kind: the node should end; lowlat_ended says whether something else than the master's word is behind it.
#define LOWLAT_EVENT_STOP 4

// event.kind: event.text is a word of the master's user.
#define LOWLAT_EVENT_COMMAND 5

// event.kind: event.text says what is damaged in a recording. Reading goes on behind it.
#define LOWLAT_EVENT_DAMAGE 6

// What a function gives back.
enum lowlat_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : uint32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
    // Done.
    LOWLAT_STATUS_OK = 0,
    // An argument that cannot be: NULL, no UTF-8, a number out of its range.
    LOWLAT_STATUS_ARGUMENT = 1,
    // The program was compiled with the header of another version.
    LOWLAT_STATUS_VERSION = 2,
    // The node is in use: its handler runs, or another thread is in a function of it.
    LOWLAT_STATUS_BUSY = 3,
    // Nobody listens at the socket.
    LOWLAT_STATUS_UNREACHABLE = 4,
    // The master refuses this node, at once or after it has joined, or the stream refuses this record.
    LOWLAT_STATUS_REFUSED = 5,
    // The master does not answer, or closed the connection.
    LOWLAT_STATUS_SILENT = 6,
    // What came cannot be used: processes of different versions, or no memory to map.
    LOWLAT_STATUS_UNUSABLE = 7,
    // The system refused.
    LOWLAT_STATUS_SYSTEM = 8,
    // The node joined without a stream to write.
    LOWLAT_STATUS_NO_STREAM = 9,
    // The master gave this process up, and another may have its place. End, and start again.
    LOWLAT_STATUS_FENCED = 10,
    // The master died without stopping its nodes, and they stop with it.
    LOWLAT_STATUS_MASTER_GONE = 11,
    // The payload is longer than the stream takes.
    LOWLAT_STATUS_TOO_LONG = 12,
    // A subscriber that may lose nothing has no room. Try again once it has read.
    LOWLAT_STATUS_NO_CREDIT = 13,
    // The record is not of that kind, or damaged.
    LOWLAT_STATUS_WRONG_RECORD = 14,
    // The recording cannot be read.
    LOWLAT_STATUS_JOURNAL = 15,
    // The recording has no more records.
    LOWLAT_STATUS_END = 16,
    // The node belongs to the process that this one was forked from. Join in this process.
    LOWLAT_STATUS_FORKED = 17,
    // A fault of this library. The handle is of no use any more: release it.
    LOWLAT_STATUS_INTERNAL = 99,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum lowlat_status lowlat_status;
#else
typedef uint32_t lowlat_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A recording that is read from its beginning to its end, all chosen streams by time.
typedef struct lowlat_journal lowlat_journal;

// A node of the pipeline.
//
// One thread at a time uses it, and hands it to another with a lock, a join or the like. A call from a second thread
// mostly returns LOWLAT_STATUS_BUSY. Two calls that start within the same nanoseconds may not notice each other, and are
// undefined behaviour.
//
// It belongs to the process that joined. In a process forked from it every function returns LOWLAT_STATUS_FORKED, but
// lowlat_leave, which does nothing: the parent's node stays as it is.
typedef struct lowlat_node lowlat_node;

// What stands beside a payload.
typedef struct lowlat_stamp {
    // What the payload is: LOWLAT_KIND_..., or a kind of your own below 0xff00.
    uint16_t kind;
    // Version of the payload's shape.
    uint16_t schema;
    // The instrument, by which readers are chosen; of an answer the number of the strategy that it is for.
    uint32_t instrument;
    // Who made it: of an order the strategy's number, else the node's.
    uint32_t source;
    // 0.
    uint32_t reserved;
    // When it was written, ns of the pipeline's clock. 0 when publishing: now.
    uint64_t generated_ns;
    // When the record that caused it was written. 0 when publishing: its own time.
    uint64_t trigger_ns;
    // The sequence of the record that caused it; 0 without one.
    uint64_t cause_sequence;
} lowlat_stamp;

// A record. It and what it points to are valid until the handler returns, or until lowlat_journal_next is called again.
typedef struct lowlat_record {
    // The stream: "md", "td", "orders.NAME", ...
    const char *stream;
    // Its payload, aligned to nothing.
    const uint8_t *payload;
    // Bytes of the payload.
    size_t payload_bytes;
    // Its number in the stream.
    uint64_t sequence;
    // When this process had read it, ns of the pipeline's clock; 0 in a recording.
    uint64_t received_ns;
    // What stands beside the payload.
    struct lowlat_stamp stamp;
} lowlat_record;

// Best bid and offer of an instrument, which is stamp.instrument. Prices in LOWLAT_PRICE_SCALE-ths.
typedef struct lowlat_quote {
    // When it was due by its schedule, ns of the pipeline's clock.
    uint64_t scheduled_ns;
    // Best bid.
    int64_t bid;
    // Best offer.
    int64_t ask;
    // Last trade.
    int64_t last;
    // Size at the bid.
    uint32_t bid_size;
    // Size at the offer.
    uint32_t ask_size;
} lowlat_quote;

// An order. To send one, set instrument, side, price and quantity; lowlat_send_order sets the rest.
typedef struct lowlat_order {
    // The strategy's number for it, never used twice, also over restarts. Answers name it.
    uint64_t number;
    // When the quote that caused it was due.
    uint64_t scheduled_ns;
    // When the strategy had read that quote.
    uint64_t received_ns;
    // Limit price in LOWLAT_PRICE_SCALE-ths.
    int64_t price;
    // How many.
    uint32_t quantity;
    // LOWLAT_SIDE_...
    uint32_t side;
    // The instrument.
    uint32_t instrument;
    // 0.
    uint32_t reserved;
} lowlat_order;

// td's word on an order. Each order gets exactly one that says accepted or rejected.
typedef struct lowlat_answer {
    // The order's number.
    uint64_t order_number;
    // When td had read the order, ns of the pipeline's clock.
    uint64_t received_ns;
    // Price of the fill; of other answers that of the order.
    int64_t price;
    // Quantity of the fill; of other answers that of the order.
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
    // A stream's name, or the beginning of many and a star: "orders.*". They need not be there yet.
    const char *streams;
    // Instruments, with LOWLAT_KEYS_ONLY.
    const uint32_t *keys;
    // How many keys.
    size_t key_count;
    // LOWLAT_KEYS_...
    uint32_t which;
    // 0.
    uint32_t reserved;
} lowlat_reads;

// How a node joins. Begin with lowlat_node_options_default(), which sets the first two fields.
typedef struct lowlat_node_options {
    // sizeof(lowlat_node_options).
    uint32_t size_bytes;
    // LOWLAT_ABI_VERSION.
    uint32_t abi_version;
    // The master's socket: FOLDER/master.sock.
    const char *socket;
    // The node's name, which no other node of the master has. One that is started again under it keeps its number.
    const char *name;
    // Its role, for those who look at it.
    const char *role;
    // The stream that it writes; NULL: none.
    const char *writes;
    // Bytes of that stream's ring: a power of two from 4096; 0: 1 MiB.
    uint64_t capacity_bytes;
    // Instruments of that stream are below this; 0: 1.
    uint32_t keys;
    // LOWLAT_WAIT_...
    uint32_t wait;
    // What it reads.
    const struct lowlat_reads *reads;
    // How many of them.
    size_t reads_count;
} lowlat_node_options;

// How a strategy joins: it reads its instruments of "md" and its answers of "td", and writes "orders.NAME". Start with
// lowlat_strategy_options_default(), which sets the first two fields, and number to LOWLAT_NUMBER_FREE.
typedef struct lowlat_strategy_options {
    // sizeof(lowlat_strategy_options).
    uint32_t size_bytes;
    // LOWLAT_ABI_VERSION.
    uint32_t abi_version;
    // The master's socket: FOLDER/master.sock.
    const char *socket;
    // The node's name, which no other node of the master has.
    const char *name;
    // The strategy's number: LOWLAT_NUMBER_FREE, or one below 1024, which the master refuses when another strategy has it.
    // A node that restarts under its name gets the same free number.
    uint32_t number;
    // LOWLAT_WAIT_...
    uint32_t wait;
    // The instruments whose quotes it wants.
    const uint32_t *instruments;
    // How many of them.
    size_t instrument_count;
    // Bytes of its orders' ring: a power of two from 4096; 0: 1 MiB.
    uint64_t capacity_bytes;
} lowlat_strategy_options;

// What a node or a recording gives. It and what it points to are valid as long as a record is.
typedef struct lowlat_event {
    // LOWLAT_EVENT_... Pass over kinds that you do not know.
    uint32_t kind;
    // 0.
    uint32_t reserved;
    // The stream of a record or of lost records; else NULL.
    const char *stream;
    // The record; else NULL.
    const struct lowlat_record *record;
    // How many records are lost.
    uint64_t lost;
    // A command; what is damaged; why records are not in a recording; else NULL.
    const char *text;
} lowlat_event;

// Called by lowlat_poll with each event. It may publish and send orders through `node`, and read records; lowlat_poll,
// lowlat_wait, lowlat_ended and lowlat_leave return LOWLAT_STATUS_BUSY. It must return: neither exceptions nor longjmp may
// leave it.
typedef void (*lowlat_handler)(void *user, struct lowlat_node *node, const struct lowlat_event *event);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of lowlat, such as "0.1.0". The text lives as long as the program.
const char *lowlat_version(void);

// LOWLAT_ABI_VERSION of the library. That of the header is the constant.
uint32_t lowlat_abi_version(void);

// Now, in the pipeline's clock: nanoseconds of CLOCK_MONOTONIC.
uint64_t lowlat_now_ns(void);

// The quote in a record. LOWLAT_STATUS_WRONG_RECORD when it holds none.
lowlat_status lowlat_quote_of(const struct lowlat_record *record, struct lowlat_quote *quote);

// The order in a record. LOWLAT_STATUS_WRONG_RECORD when it holds none.
lowlat_status lowlat_order_of(const struct lowlat_record *record, struct lowlat_order *order);

// The answer in a record. LOWLAT_STATUS_WRONG_RECORD when it holds none.
lowlat_status lowlat_answer_of(const struct lowlat_record *record, struct lowlat_answer *answer);

// What the last call of this thread that did not give back LOWLAT_STATUS_OK had to say: what was found, what was
// expected, and what to do. "" before the first. The text is valid until the next such call of this thread.
const char *lowlat_last_error(void);

// Joins the master that listens at a socket, and gives a node to release with lowlat_leave. Once it returns, nothing is
// lost that is published from then on. It may take up to 30 s when the master or a publisher is slow.
lowlat_status lowlat_join(const struct lowlat_node_options *options,
                          struct lowlat_node **node);

// Joins as a strategy, and gives a node to release with lowlat_leave. As lowlat_join.
lowlat_status lowlat_join_strategy(const struct lowlat_strategy_options *options, struct lowlat_node **node);

// Opens the recording in a folder. `streams` is a stream's name, or the beginning of some and a star ("orders.*"); NULL:
// all of them. Release it with lowlat_journal_close.
lowlat_status lowlat_journal_open(const char *folder,
                                  const char *streams,
                                  struct lowlat_journal **journal);

// The next event: LOWLAT_EVENT_RECORD, LOWLAT_EVENT_LOST or LOWLAT_EVENT_DAMAGE. LOWLAT_STATUS_END when there is none. The event
// is valid until the next call.
lowlat_status lowlat_journal_next(struct lowlat_journal *journal,
                                  const struct lowlat_event **event);

// Releases a recording. NULL is nothing to release.
lowlat_status lowlat_journal_close(struct lowlat_journal *journal);

// Hands what is there to the handler, and never blocks. `events` is set to how many events there were; it may be NULL.
lowlat_status lowlat_poll(struct lowlat_node *node,
                          lowlat_handler handler,
                          void *user,
                          size_t *events);

// Waits, as the node's options say, until a poll would find something or the pipeline's clock shows `until_ns`
// (lowlat_now_ns; UINT64_MAX: without end). Signals do not end it: give a time when a flag is to be looked at.
lowlat_status lowlat_wait(struct lowlat_node *node,
                          uint64_t until_ns);

// Why the node ends, as the last poll or wait found it. LOWLAT_STATUS_OK while it may continue, and when its master has
// stopped it: the ordinary end. LOWLAT_STATUS_MASTER_GONE when the master died, LOWLAT_STATUS_FENCED when it gave this
// process up, LOWLAT_STATUS_REFUSED when it refused the node after it had joined.
lowlat_status lowlat_ended(const struct lowlat_node *node);

// The node's number, below 1024: the same over restarts of the same name. UINT32_MAX for NULL.
uint32_t lowlat_node_number(const struct lowlat_node *node);

// The number of the node's strategy, by which its orders and answers are known: the one that it joined with, or that the
// master chose. UINT32_MAX for NULL, and for a node that did not join with lowlat_join_strategy.
uint32_t lowlat_node_strategy(const struct lowlat_node *node);

// How many processes of the node's name there were, this one counted: 1 for the first. 0 for NULL.
uint64_t lowlat_node_epoch(const struct lowlat_node *node);

// Leaves the master and releases the node, which must not be used after LOWLAT_STATUS_OK. LOWLAT_STATUS_BUSY when it is
// in use, and nothing is released. NULL is nothing to release. In a process forked from the one that joined it does
// nothing: the memory stays until that process ends.
lowlat_status lowlat_leave(struct lowlat_node *node);

// Appends a record to the node's stream and gives it to every reader that wants stamp.instrument; those that sleep are
// woken, with a system call each. `sequence` is set to its number; it may be NULL. Not before LOWLAT_EVENT_BEGIN, if all
// readers are to have it.
lowlat_status lowlat_publish(struct lowlat_node *node,
                             const struct lowlat_stamp *stamp,
                             const void *payload,
                             size_t payload_bytes,
                             uint64_t *sequence);

// Sends an order of a node that joined with lowlat_join_strategy. instrument, side, price and quantity are the caller's;
// number, scheduled_ns and received_ns are set. `cause` is the record that it is sent because of, so that tick-to-order
// latency is known; NULL: none, which counts from now.
lowlat_status lowlat_send_order(struct lowlat_node *node,
                                const struct lowlat_record *cause,
                                struct lowlat_order *order);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

// Options with the size and the version that this header has, and zeros.
static inline lowlat_node_options lowlat_node_options_default(void)
{
    lowlat_node_options options;
    memset(&options, 0, sizeof options);
    options.size_bytes = (uint32_t)sizeof options;
    options.abi_version = LOWLAT_ABI_VERSION;
    return options;
}

// Options with the size and the version that this header has, a free number, and zeros.
static inline lowlat_strategy_options lowlat_strategy_options_default(void)
{
    lowlat_strategy_options options;
    memset(&options, 0, sizeof options);
    options.size_bytes = (uint32_t)sizeof options;
    options.abi_version = LOWLAT_ABI_VERSION;
    options.number = LOWLAT_NUMBER_FREE;
    return options;
}

#endif /* LOWLAT_H */
