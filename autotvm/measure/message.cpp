#include "autotvm/measure/message.h"

#include <poll.h>
#include <sys/socket.h>
#include <tenon/runtime/timer.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

namespace tenon {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
constexpr double kPollUs = 50000;  // how late a stop may be noticed

bool send_all(int socket, const void* data, size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t sent = ::send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

Received wait_readable(int socket, double deadline_us, const std::atomic<bool>* stop) {
  for (;;) {
    if (stop && stop->load()) return Received::stopped;
    const double left = deadline_us - now_us();
    if (left <= 0) return Received::timeout;
    const double wait_us = stop || std::isinf(left) ? std::min(left, kPollUs) : left;
    pollfd entry{socket, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min(std::ceil(wait_us / 1000), 1e9)));
    if (ready > 0) return Received::message;
    if (ready < 0 && errno != EINTR) return Received::closed;
  }
}

Received receive_all(int socket, void* data, size_t size, double deadline_us,
                     const std::atomic<bool>* stop) {
  char* at = static_cast<char*>(data);
  while (size > 0) {
    const Received ready = wait_readable(socket, deadline_us, stop);
    if (ready != Received::message) return ready;
    const ssize_t got = ::recv(socket, at, size, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) return Received::closed;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return Received::message;
}

Json describe(const Parameter& p) {
  Json shape = Json::array();
  for (const Extent& e : p.shape) shape.push_back({e.value, e.symbol, e.factor});
  return {{"name", p.name},
          {"dtype", name(p.dtype)},
          {"shape", shape},
          {"output", p.is_output},
          {"layout", p.layout}};
}

Parameter parameter_from(const Json& j) {
  Parameter p;
  p.name = j.at("name");
  const std::optional<DType> dtype = parse_dtype(j.at("dtype").get<std::string>());
  TENON_CHECK(dtype.has_value(), "element type {}", j.at("dtype").dump());
  p.dtype = *dtype;
  for (const Json& e : j.at("shape")) {
    const Extent number(e.at(0).get<int64_t>());
    const int symbol = e.at(1).get<int>();
    p.shape.push_back(symbol < 0 ? number
                                 : Extent::of_symbol(symbol, e.at(2).get<int64_t>(), number.value));
  }
  p.is_output = j.at("output");
  p.layout = j.at("layout");
  return p;
}

/// The description of a kernel; its bytes and those of its packers are appended to `body`.
Json describe(const KernelObject& object, std::string& body) {
  Json head;
  head["symbol"] = object.symbol;
  head["compile_us"] = object.compile_us;
  head["name"] = object.module.name;
  head["workspace_bytes"] = object.module.workspace_bytes;
  head["workspace_bytes_per_worker"] = object.module.workspace_bytes_per_worker;
  head["symbolic_workspace"] = object.symbolic_workspace;
  head["symbols"] = Json::array();
  for (const Symbol& s : object.module.symbols) head["symbols"].push_back({s.name, s.low, s.high});
  head["parameters"] = Json::array();
  for (const Parameter& p : object.module.parameters) head["parameters"].push_back(describe(p));
  head["bytes"] = object.bytes.size();
  body += object.bytes;
  head["packers"] = Json::array();
  for (const KernelObject& packer : object.packers)
    head["packers"].push_back(describe(packer, body));
  return head;
}

/// The kernel whose bytes start at `body`, which then starts behind them and those of its packers.
KernelObject kernel_from(const Json& head, std::string_view& body) {
  KernelObject object;
  const size_t bytes = head.at("bytes");
  TENON_CHECK(bytes <= body.size(), "a message that ends inside a kernel");
  object.bytes = body.substr(0, bytes);
  body.remove_prefix(bytes);
  object.symbol = head.at("symbol");
  object.compile_us = head.at("compile_us");
  object.module.name = head.at("name");
  object.module.workspace_bytes = head.at("workspace_bytes");
  object.module.workspace_bytes_per_worker = head.at("workspace_bytes_per_worker");
  object.symbolic_workspace = head.at("symbolic_workspace");
  for (const Json& s : head.at("symbols"))
    object.module.symbols.push_back(
        {s.at(0).get<std::string>(), s.at(1).get<int64_t>(), s.at(2).get<int64_t>()});
  for (const Json& p : head.at("parameters")) object.module.parameters.push_back(parameter_from(p));
  for (const Json& packer : head.at("packers")) object.packers.push_back(kernel_from(packer, body));
  return object;
}

}  // namespace

bool send_message(int socket, const Message& message) {
  const uint64_t sizes[2] = {message.head.size(), message.body.size()};
  return send_all(socket, sizes, sizeof sizes) &&
         send_all(socket, message.head.data(), message.head.size()) &&
         send_all(socket, message.body.data(), message.body.size());
}

Received receive_message(int socket, Message& out, double deadline_us,
                         const std::atomic<bool>* stop) {
  uint64_t sizes[2] = {0, 0};
  Received got = receive_all(socket, sizes, sizeof sizes, deadline_us, stop);
  if (got != Received::message) return got;
  if (sizes[0] > kMaxBytes || sizes[1] > kMaxBytes) return Received::closed;
  out.head.resize(sizes[0]);
  got = receive_all(socket, out.head.data(), sizes[0], deadline_us, stop);
  if (got != Received::message) return got;
  out.body.resize(sizes[1]);
  return receive_all(socket, out.body.data(), sizes[1], deadline_us, stop);
}

bool send_descriptor(int socket, int fd) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(head), &fd, sizeof fd);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

int receive_descriptor(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  if (::recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* head = CMSG_FIRSTHDR(&message);
  if (!head || head->cmsg_type != SCM_RIGHTS) return -1;
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return fd;
}

Message to_message(const KernelObject& object) {
  Message message;
  message.head = describe(object, message.body).dump();
  return message;
}

KernelObject kernel_from_message(const Message& message) {
  try {
    std::string_view body = message.body;
    return kernel_from(Json::parse(message.head), body);
  } catch (const Json::exception& e) {
    throw InternalError(fmt::format("a message that is no kernel: {}", e.what()));
  }
}

}  // namespace tenon
