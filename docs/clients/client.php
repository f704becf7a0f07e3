<?php
[$host, $port] = explode(":", getenv("FLOWGATE_RESP") ?: "127.0.0.1:7071");
$http = getenv("FLOWGATE_SERVER") ?: "http://127.0.0.1:7070";

// A Redis client does this and more: $redis->rawCommand("FG.LIMIT", "php:42", "2/60s").
$socket = fsockopen($host, (int) $port, $code, $error, 1.0) or exit($error);
for ($i = 0; $i < 3; $i++) {
    fwrite($socket, "FG.LIMIT php:42 2/60s\r\n");
    $lines = array_map(fn() => rtrim(fgets($socket)), range(1, 11));   // *8, six numbers, two empty texts
    [$allowed, $limit, $remaining, $retryMs] = array_map(fn($line) => (int) substr($line, 1), array_slice($lines, 1, 4));
    echo $allowed ? "go" : "wait", " $remaining\n";
}

$context = stream_context_create(["http" => [
    "method" => "POST", "header" => "Content-Type: application/json", "timeout" => 1,
    "content" => json_encode(["key" => "php:42", "limit" => "2/60s"]),
]]);
$decision = json_decode(file_get_contents("$http/v1/limit", false, $context));
echo $decision->allowed ? "go" : "wait", " $decision->remaining\n";
