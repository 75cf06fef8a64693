import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Reads big-endian doubles (argument "double") or floats ("float"); writes Java's own text, one a line. */
class JavaText {
    public static void main(String[] arguments) throws Exception {
        boolean isDouble = arguments[0].equals("double");
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        StringBuilder text = new StringBuilder();
        try (PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 20), false, StandardCharsets.US_ASCII)) {
            while (true) {
                try {
                    text.append(isDouble ? Double.toString(in.readDouble()) : Float.toString(in.readFloat()));
                } catch (EOFException end) {
                    break;
                }
                text.append('\n');
                if (text.length() > 1 << 16) {
                    out.append(text);
                    text.setLength(0);
                }
            }
            out.append(text);
        }
    }
}
