#pragma once
#include <tenon/compile/compile.h>

#include <atomic>
#include <string>

namespace tenon {

/// What the tuner and its child processes say to each other over a socket: a JSON object and bytes.
///
///     | u64 bytes of head | u64 bytes of body | head | body |
struct Message {
  std::string head = "{}";
  std::string body;
};

/// False when the other end is gone. Never raises SIGPIPE.
bool send_message(int socket, const Message& message);

enum class Received { message, closed, timeout, stopped };

/// Waits until `deadline_us` (of now_us(); infinity: for ever) or until `stop` is set. `closed`
/// also for bytes that are no message.
Received receive_message(int socket, Message& out, double deadline_us,
                         const std::atomic<bool>* stop = nullptr);

/// Hands an open descriptor to the process at the other end, which must expect it. False when it is
/// gone.
bool send_descriptor(int socket, int fd);
/// The descriptor, close-on-exec; -1 when none comes.
int receive_descriptor(int socket);

/// A kernel as a message: its description in the head, the object file in the body.
Message to_message(const KernelObject& object);
/// InternalError when it is none.
KernelObject kernel_from_message(const Message& message);

}  // namespace tenon
