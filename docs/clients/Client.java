import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

class Client {
    public static void main(String[] args) throws Exception {
        String[] resp = System.getenv().getOrDefault("FLOWGATE_RESP", "127.0.0.1:7071").split(":");
        String http = System.getenv().getOrDefault("FLOWGATE_SERVER", "http://127.0.0.1:7070");

        // A Redis client does this and more: jedis.sendCommand(() -> "FG.LIMIT".getBytes(), "java:42", "2/60s").
        try (Socket socket = new Socket(resp[0], Integer.parseInt(resp[1]))) {
            socket.setSoTimeout(1000);
            BufferedReader replies = new BufferedReader(new InputStreamReader(socket.getInputStream()));
            for (int i = 0; i < 3; i++) {
                socket.getOutputStream().write("FG.LIMIT java:42 2/60s\r\n".getBytes());
                String[] lines = new String[11]; // *8, six numbers, two empty texts
                for (int line = 0; line < lines.length; line++) lines[line] = replies.readLine();
                System.out.println((lines[1].equals(":1") ? "go " : "wait ") + lines[3].substring(1));
            }
        }

        HttpRequest request = HttpRequest.newBuilder(URI.create(http + "/v1/limit"))
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString("{\"key\":\"java:42\",\"limit\":\"2/60s\"}"))
            .build();
        String decision = HttpClient.newHttpClient().send(request, BodyHandlers.ofString()).body();
        // Any JSON library reads it; this is enough to show it.
        String remaining = decision.replaceFirst(".*\"remaining\":(\\d+).*", "$1");
        System.out.println((decision.contains("\"allowed\":true") ? "go " : "wait ") + remaining);
    }
}
